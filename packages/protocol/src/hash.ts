import { createKeccak, createSHA256 } from 'hash-wasm';
import { sha256Hex } from '#sha256';
import { AppError } from './errors.ts';
import { bytesToHex } from './hex.ts';
import { isItemHash64 } from './network-form/item-hash.ts';

// One WebAssembly instance, used synchronously from start to end of a digest: ten times faster than the pure JavaScript ones
// (docs/dependencies.md).
const keccak = await createKeccak(256);

/** Keccak-256 as Ethereum uses it (not SHA-3): 32 bytes. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return keccak.init().update(bytes).digest('binary');
}

/** SHA-256 of bytes, or of a text in UTF-8: 64 lower-case hexadecimal digits. */
export { sha256Hex };

/** The same of bytes as they come. */
export async function sha256HexOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const own = (await createSHA256()).init();
  for await (const chunk of chunks) own.update(chunk);
  return bytesToHex(own.digest('binary'));
}

/** A SHA-256 in 64 lower-case hexadecimal digits that names a message, an instance or a file. */
export type ItemHash = string & { readonly __brand: 'ItemHash' };

/** The same as `parseItemHash`; undefined where it throws. */
export function readItemHash(text: string): ItemHash | undefined {
  const lower = text.toLowerCase();
  return isItemHash64(lower) ? (lower as ItemHash) : undefined;
}

/** Accepts upper case too, since people paste; throws INVALID_HASH. */
export function parseItemHash(text: string): ItemHash {
  const hash = readItemHash(text);
  if (hash === undefined)
    throw new AppError('INVALID_HASH', 'a hash is 64 hexadecimal digits', {
      details: { length: text.length },
    });
  return hash;
}

/**
 * The item hash of a signed message (docs/decisions.md 2): SHA-256 of `chain "\n" sender "\n" signedText`.
 * The sender is part of it because the signed text does not name who signed it.
 */
export function itemHashOf(chain: string, sender: string, signedText: string): ItemHash {
  return sha256Hex(`${chain}\n${sender}\n${signedText}`) as ItemHash;
}
