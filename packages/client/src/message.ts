import { itemHashOf } from '@skerry/protocol/forms';
import type { Signer } from './signer.ts';

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

/** Builds and signs a message (specification, "Authentication"). The signed text is the body's own `message`, byte for byte. */
export function signMessage(draft: MessageDraft, signer: Signer): SignedBody {
  const message = {
    chain: signer.chain,
    channel: draft.channel ?? DEFAULT_CHANNEL,
    type: draft.type,
    timestamp: draft.timestamp ?? Math.floor(Date.now() / 1000),
    nonce: draft.nonce ?? crypto.randomUUID().replaceAll('-', ''),
    content: draft.content,
  };
  const text = JSON.stringify(message);
  const signature = signer.sign(text);
  return {
    body: `{"message":${text},"signature":${JSON.stringify(signature)},"address":${JSON.stringify(signer.address)}}`,
    itemHash: itemHashOf(signer.chain, signer.address, text),
  };
}
