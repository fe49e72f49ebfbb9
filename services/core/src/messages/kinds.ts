import type { VerifiedMessage } from '@skerry/protocol';
import { type Accepted, accept, type MessageKind, pending } from './accepted.ts';
import { type MessageType, readContent } from './contents.ts';
import { aggregate } from './kinds/aggregate.ts';
import { forget } from './kinds/forget.ts';
import { instance, instanceControl, instanceUpdate } from './kinds/instance.ts';
import { ipfsPin } from './kinds/ipfs-pin.ts';
import { post } from './kinds/post.ts';
import { program } from './kinds/program.ts';
import { store } from './kinds/store.ts';

/** Message type -> what it means. */
const KINDS: { readonly [T in MessageType]: MessageKind<T> } = {
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

/** A message whose content is a file that is not at hand. */
const acceptWithoutContent = (message: VerifiedMessage): Accepted =>
  accept(message, {
    needs: { files: [message.itemHash] },
    decide: () => pending('CONTENT_NOT_FOUND', `the message's content ${message.itemHash} is not here yet`),
  });

/** Everything about a verified message that is decidable without I/O. */
export function acceptMessage(message: VerifiedMessage): Accepted {
  if (message.content === null) return acceptWithoutContent(message);
  const { type, content } = readContent(message);
  const accepted = (KINDS[type] as MessageKind)(message, content);
  // A content that is a file stays for as long as its message does.
  return message.sourceText === null
    ? { ...accepted, changes: [...accepted.changes, { kind: 'pin', fileHash: message.itemHash }] }
    : accepted;
}
