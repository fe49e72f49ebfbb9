import { AppError, type VerifiedMessage, verifyEnvelope } from '@skerry/protocol';
import type { Accepted, MessageKind } from './accepted.ts';
import { instance, instanceControl, instanceUpdate } from './kinds/instance.ts';
import { post } from './kinds/post.ts';
import { store } from './kinds/store.ts';

/** Message type -> what it means. */
const KINDS: Readonly<Record<string, MessageKind>> = {
  POST: post,
  STORE: store,
  INSTANCE: instance,
  INSTANCE_UPDATE: instanceUpdate,
  INSTANCE_CONTROL: instanceControl,
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

/**
 * The first step of a message's way: from a request body to an accepted message, without I/O.
 * Forgeries and malformed messages end here; nothing of them is stored.
 *
 * @param type the only type that this door takes, where it takes one
 */
export function intake(body: Uint8Array, nowSeconds: number, type?: string): Accepted {
  const message = verifyEnvelope(body, nowSeconds);
  if (type !== undefined && message.type !== type) {
    throw new AppError(
      'UNKNOWN_MESSAGE_TYPE',
      `this path takes messages of type ${type}, not ${JSON.stringify(message.type)}`,
    );
  }
  return acceptMessage(message);
}
