import { AppError, itemHashOf, LIMITS } from '@skerry/protocol/forms';
import type { AskedSigner, Signer } from './signer.ts';

export interface MessageDraft {
  readonly type: string;
  readonly content: unknown;
  readonly channel?: string;
  /** Unix seconds; now by default. */
  readonly timestamp?: number;
  /** Makes two equal messages of one second different; random by default. */
  readonly nonce?: string;
}

export interface SignedBody {
  /** The request body to send. */
  readonly body: string;
  /** The item hash that the network will know it by. */
  readonly itemHash: string;
}

export const DEFAULT_CHANNEL = 'skerry';
/** Of a clock that is right; nodes take more, for clocks that are not. */
const AHEAD_SECONDS_MAX = LIMITS.futureSeconds / 2;

function textOf(draft: MessageDraft, signer: AskedSigner): string {
  return JSON.stringify({
    chain: signer.chain,
    channel: draft.channel ?? DEFAULT_CHANNEL,
    type: draft.type,
    timestamp: draft.timestamp ?? Math.floor(Date.now() / 1000),
    nonce: draft.nonce ?? crypto.randomUUID().replaceAll('-', ''),
    content: draft.content,
  });
}

const bodyOf = (text: string, signature: string, { chain, address }: AskedSigner): SignedBody => ({
  body: `{"message":${text},"signature":${JSON.stringify(signature)},"address":${JSON.stringify(address)}}`,
  itemHash: itemHashOf(chain, address, text),
});

/** Builds and signs a message (specification, "Authentication"). The signed text is the body's own `message`, byte for byte. */
export function signMessage(draft: MessageDraft, signer: Signer): SignedBody {
  const text = textOf(draft, signer);
  return bodyOf(text, signer.sign(text), signer);
}

/** The same by a signer that may have to be asked. Rejects where it refuses. */
export async function requestMessage(draft: MessageDraft, signer: AskedSigner): Promise<SignedBody> {
  const text = textOf(draft, signer);
  return bodyOf(text, await signer.sign(text), signer);
}

/** The last change of something. */
export interface LastChange {
  /** Of the node that tells of it. */
  readonly url: string;
  /** Unix seconds; undefined where there is none. */
  readonly time: number | undefined;
}

/**
 * A change, dated after the last one that the caller knows of: within one second, the resolution of a timestamp, the item hash
 * would decide which of two changes counts. Throws TIMESTAMP_IN_FUTURE.
 */
export async function requestChange(
  draft: MessageDraft,
  signer: AskedSigner,
  { url, time: after = 0 }: LastChange,
): Promise<SignedBody> {
  const now = Math.floor(Date.now() / 1000);
  // No node takes a change from later than that: one that tells of such wants a signature to bring out when its date has come.
  if (!(after - now <= LIMITS.futureSeconds))
    throw new AppError(
      'TIMESTAMP_IN_FUTURE',
      `${url} says that the last change was made ${Math.ceil(after - now)} seconds from now: either its clock is wrong, or the one here`,
    );
  const timestamp = Math.max(now, Math.floor(after) + 1);
  // Whoever changes one thing many times a second runs ahead of the clock, and would be refused at some time.
  if (timestamp - now > AHEAD_SECONDS_MAX) await new Promise((resolve) => setTimeout(resolve, 1000));
  return requestMessage({ ...draft, timestamp }, signer);
}

/** Throws HASH_MISMATCH where a node names another message than the one that it was sent: that would be waited for, changed or forgotten. */
export function checkKept(signedHash: string, named: string): void {
  if (named === signedHash) return;
  throw new AppError(
    'HASH_MISMATCH',
    `the node says that it keeps ${named}: the message that was signed is ${signedHash}`,
    { details: { item_hash: signedHash } },
  );
}
