import { createRequire } from 'node:module';
import { createSigner, type Signer } from '@skerry/client';
import { bytesToHex, hexToBytes, personalSignDigest } from '@skerry/protocol/forms';

/** What is used of npm's libsecp256k1: a signature is 64 bytes, r then s, with the nonce of RFC 6979. */
interface Bindings {
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { readonly signature: Uint8Array; readonly recid: number };
}

/** It is optional, as in the product, which checks signatures with it. */
function loadBindings(): Bindings | undefined {
  try {
    return createRequire(import.meta.url)('secp256k1/bindings.js') as Bindings;
  } catch {
    return undefined;
  }
}
const bindings = loadBindings();

/**
 * The client's signer in a tenth of its time, for tests that sign thousands of messages: the same bytes, by the C library in place of
 * portable code. Where there is no such library it is the client's.
 * @param privateKey 0x and 64 hexadecimal digits
 */
export function createQuickSigner(privateKey: string): Signer {
  const signer = createSigner(privateKey);
  const key = hexToBytes(privateKey);
  if (!bindings || !key) return signer;
  return {
    ...signer,
    sign(text) {
      const { signature, recid } = bindings.ecdsaSign(personalSignDigest(text), key);
      return `0x${bytesToHex(signature)}${bytesToHex(Uint8Array.of(27 + recid))}`;
    },
  };
}
