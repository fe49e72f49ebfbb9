import { keccak256 } from '../hash.ts';

const encoder = new TextEncoder();
/** A UTF-16 unit takes three bytes at most. */
const BYTES_PER_UNIT = 3;
/** Room for the prefix with its number. */
const PREFIX_BYTES = 64;
/** Most messages fit; a longer one has memory of its own. */
const scratch = new Uint8Array(16 * 1024);

/** The digest that wallets sign for a text (EIP-191, version 0x45). 32 bytes. */
export function personalSignDigest(text: string): Uint8Array {
  const room = PREFIX_BYTES + text.length * BYTES_PER_UNIT;
  const bytes = room <= scratch.length ? scratch : new Uint8Array(room);
  const { written } = encoder.encodeInto(text, bytes.subarray(PREFIX_BYTES));
  const prefix = `\x19Ethereum Signed Message:\n${written}`;
  // ASCII, and right before the text.
  const start = PREFIX_BYTES - prefix.length;
  for (let at = 0; at < prefix.length; at++) bytes[start + at] = prefix.charCodeAt(at);
  return keccak256(bytes.subarray(start, PREFIX_BYTES + written));
}
