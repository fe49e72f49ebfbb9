import { AppError, LIMITS, sha256Hex } from '@skerry/protocol';
import { DEFAULT_CHANNEL } from './message.ts';
import type { Signer } from './signer.ts';

export interface NetworkDraft {
  readonly type: string;
  /** `address` and `time` are put before it where it has none. */
  readonly content: Readonly<Record<string, unknown>>;
  /** Null: no channel. */
  readonly channel?: string | null;
  /** Unix seconds with fraction; now by default. */
  readonly time?: number;
  /** Whether the node should answer only when the message is processed. */
  readonly sync?: boolean;
}

export interface NetworkBody {
  /** The request body to send to `POST /messages`. */
  readonly body: string;
  /** The item hash that the network will know it by. */
  readonly itemHash: string;
}

/**
 * Builds and signs an inline message in the form that deployed nodes and their SDKs speak (docs/wire-forms.md).
 *
 * @throws AppError INVALID_CONTENT where the content is too long to travel inline
 */
export function buildNetworkMessage(draft: NetworkDraft, signer: Signer): NetworkBody {
  const time = draft.time ?? Date.now() / 1000;
  const itemContent = JSON.stringify({ address: signer.address, time, ...draft.content });
  // Counted in UTF-16 units: never less than the code points that nodes count.
  if (itemContent.length > LIMITS.inlineContentChars) {
    throw new AppError(
      'INVALID_CONTENT',
      `the content has ${itemContent.length} characters; at most ${LIMITS.inlineContentChars} travel inline`,
    );
  }
  const itemHash = sha256Hex(itemContent);
  const channel = draft.channel === undefined ? DEFAULT_CHANNEL : draft.channel;
  const message = {
    chain: signer.chain,
    sender: signer.address,
    type: draft.type,
    ...(channel === null ? {} : { channel }),
    time,
    item_type: 'inline',
    item_hash: itemHash,
    item_content: itemContent,
    signature: signer.sign(`${signer.chain}\n${signer.address}\n${draft.type}\n${itemHash}`),
  };
  return { body: JSON.stringify({ sync: draft.sync ?? false, message }), itemHash };
}
