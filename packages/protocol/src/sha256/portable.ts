import { createSHA256 } from 'hash-wasm';
import { bytesToHex } from '../hex.ts';

// One WebAssembly instance, used synchronously from start to end of a digest.
const sha = await createSHA256();
const encoder = new TextEncoder();

/** Of bytes, or of a text in UTF-8. For browsers, whose own is asynchronous. */
export const sha256Hex = (input: Uint8Array | string): string =>
  bytesToHex(
    sha
      .init()
      .update(typeof input === 'string' ? encoder.encode(input) : input)
      .digest('binary'),
  );
