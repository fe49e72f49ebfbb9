import { itemHashOf } from '@skerry/protocol/forms';
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
