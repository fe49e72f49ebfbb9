import { instanceViewOf, readInstanceMessage, verifySubmission } from '@skerry/protocol';
import { signMessage } from '../message.ts';
import { createSigner } from '../signer.ts';

/** Unix seconds at which the instance was created. */
export const T0 = 1_700_000_000;
/** Nobody's word counts but that of the owner. */
export const NOBODY: ReadonlySet<string> = new Set();

export const owner = createSigner(`0x${'1'.repeat(64)}`);
const ssh_key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz';
const content = { name: 'web', cpu: 1, memory: 512, disk: 4, image: 'debian:12', ssh_key };
export const made = verifySubmission(
  signMessage({ type: 'INSTANCE', timestamp: T0, content }, owner).body,
  T0 + 1_000,
);
export const id = made.itemHash;
/** The instance as an honest node tells of it. */
export const view = instanceViewOf(readInstanceMessage(made)!.fold.apply(undefined, NOBODY)!);
/** Its message as a node answers for it. */
export const message = {
  ...{ item_hash: id, chain: 'ETH', sender: owner.address, type: 'INSTANCE', channel: made.channel },
  ...{ timestamp: T0, content, signature: made.signature, signed_text: made.sourceText, confirmations: [] },
  ...{ status: 'processed', reception_time: new Date(T0 * 1_000).toISOString() },
};
/** Where a node tells of the instance, and of its message, alone. */
export const [ALONE, MESSAGE] = [`/api/v0/instances/${id}`, `/api/v0/messages/${id}`];
export const missing = { status: 'error', code: 'MESSAGE_NOT_FOUND', error: 'no such message' };
