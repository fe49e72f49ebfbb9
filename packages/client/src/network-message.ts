import { PUBLISH_MESSAGE } from '@skerry/protocol/api/core/messages';
import type { AnswerOf } from '@skerry/protocol/api/operation';
import { AppError, LIMITS, sha256Hex } from '@skerry/protocol/forms';
import { type CallOptions, call } from './call.ts';
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

export interface StoredNetworkBody extends NetworkBody {
  /** The content: a file whose SHA-256 is the item hash, to be stored before the message is sent. */
  readonly content: string;
}

const textOf = (draft: NetworkDraft, signer: Signer, time: number) =>
  JSON.stringify({ address: signer.address, time, ...draft.content });

function bodyOf(draft: NetworkDraft, signer: Signer, time: number, item: object, itemHash: string): string {
  const channel = draft.channel === undefined ? DEFAULT_CHANNEL : draft.channel;
  const message = {
    chain: signer.chain,
    sender: signer.address,
    type: draft.type,
    ...(channel === null ? {} : { channel }),
    time,
    item_hash: itemHash,
    ...item,
    signature: signer.sign(`${signer.chain}\n${signer.address}\n${draft.type}\n${itemHash}`),
  };
  return JSON.stringify({ sync: draft.sync ?? false, message });
}

/**
 * Builds and signs an inline message in the form that deployed nodes and their SDKs speak (docs/wire-forms.md).
 *
 * @throws AppError INVALID_CONTENT where the content is too long to travel inline
 */
export function buildNetworkMessage(draft: NetworkDraft, signer: Signer): NetworkBody {
  const time = draft.time ?? Date.now() / 1000;
  const itemContent = textOf(draft, signer, time);
  // Counted in UTF-16 units: never less than the code points that nodes count.
  if (itemContent.length > LIMITS.inlineContentChars) {
    throw new AppError(
      'INVALID_CONTENT',
      `the content has ${itemContent.length} characters; at most ${LIMITS.inlineContentChars} travel inline`,
    );
  }
  const itemHash = sha256Hex(itemContent);
  const item = { item_type: 'inline', item_content: itemContent };
  return { body: bodyOf(draft, signer, time, item, itemHash), itemHash };
}

/**
 * The same for a content that is too long to travel inline: it is stored as a file, the message names it.
 *
 * @throws AppError INVALID_CONTENT where even a content file may not be as large
 */
export function buildStoredMessage(draft: NetworkDraft, signer: Signer): StoredNetworkBody {
  const time = draft.time ?? Date.now() / 1000;
  const content = textOf(draft, signer, time);
  if (new TextEncoder().encode(content).length > LIMITS.contentFileBytes)
    throw new AppError('INVALID_CONTENT', `the content is larger than ${LIMITS.contentFileBytes} bytes`);
  const itemHash = sha256Hex(content);
  return { body: bodyOf(draft, signer, time, { item_type: 'storage' }, itemHash), itemHash, content };
}

/** What any node of the network says of a message that it keeps; what it rejects is an error. */
export type Publication = AnswerOf<typeof PUBLISH_MESSAGE>;

/** Sends a message in the network form, to any node of the network. Sent again, it is the same message. */
export async function publishMessage(
  coreUrl: string,
  body: string,
  options: CallOptions = {},
): Promise<Publication> {
  return call(coreUrl, PUBLISH_MESSAGE, { body }, options);
}
