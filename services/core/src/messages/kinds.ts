import { AppError, type VerifiedMessage } from '@skerry/protocol';
import type { Accepted, MessageKind } from './accepted.ts';
import { aggregate } from './kinds/aggregate.ts';
import { forget } from './kinds/forget.ts';
import { instance, instanceControl, instanceUpdate } from './kinds/instance.ts';
import { ipfsPin } from './kinds/ipfs-pin.ts';
import { post } from './kinds/post.ts';
import { program } from './kinds/program.ts';
import { store } from './kinds/store.ts';

/** Message type -> what it means. WEBHOOK is private and goes another way (webhooks/). */
const KINDS: Readonly<Record<string, MessageKind>> = {
  POST: post,
  STORE: store,
  AGGREGATE: aggregate,
  FORGET: forget,
  PROGRAM: program,
  INSTANCE: instance,
  INSTANCE_UPDATE: instanceUpdate,
  INSTANCE_CONTROL: instanceControl,
  IPFS_PIN: ipfsPin,
};

export const MESSAGE_TYPES: readonly string[] = Object.keys(KINDS);

/** Everything about a verified message that is decidable without I/O. */
export function acceptMessage(message: VerifiedMessage): Accepted {
  const kind = Object.hasOwn(KINDS, message.type) ? KINDS[message.type] : undefined;
  if (!kind) {
    throw new AppError(
      'UNKNOWN_MESSAGE_TYPE',
      `the type ${JSON.stringify(message.type)} is not accepted; accepted: ${MESSAGE_TYPES.join(', ')}`,
    );
  }
  return kind(message);
}
