import { keccak256 } from '../hash.ts';

const encoder = new TextEncoder();

/** The digest that wallets sign for a text (EIP-191, version 0x45). 32 bytes. */
export function personalSignDigest(text: string): Uint8Array {
  const message = encoder.encode(text);
  const prefix = encoder.encode(`\x19Ethereum Signed Message:\n${message.length}`);
  const bytes = new Uint8Array(prefix.length + message.length);
  bytes.set(prefix);
  bytes.set(message, prefix.length);
  return keccak256(bytes);
}
