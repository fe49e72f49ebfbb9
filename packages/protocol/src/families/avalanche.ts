import { sha256 } from '@noble/hashes/sha2.js';
import { hash160, recoverCompressedKey } from './curves.ts';
import { decodeBase58, decodeBech32, equalBytes, utf8 } from './encoding.ts';
import { defineFamily, expectForm } from './family.ts';

const PREFIX = utf8('\x1aAvalanche Signed Message:\n');
const SIGNATURE_BYTES = 65;
const CHECKSUM_BYTES = 4;
const HUMAN_READABLE_PART = 'avax';
const ADDRESS = /^[XPC]-(.+)$/;

/** The digest that wallets sign for a text: the length is four bytes, big-endian. 32 bytes. */
export function avalancheDigest(text: string): Uint8Array {
  const message = utf8(text);
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, message.length);
  return sha256.create().update(PREFIX).update(length).update(message).digest();
}

/** CB58: base58 with the last four bytes of a SHA-256 after the payload. Throws. */
function decodeCb58(text: string, lengthBytes: number): Uint8Array {
  const bytes = decodeBase58(text, lengthBytes + CHECKSUM_BYTES);
  const payload = bytes.subarray(0, lengthBytes);
  const checksum = sha256(payload).subarray(-CHECKSUM_BYTES);
  expectForm(equalBytes(checksum, bytes.subarray(lengthBytes)), 'checksum');
  return payload;
}

/** The hash of the public key in an address. Throws. */
function keyHashOf(address: string): Uint8Array {
  const match = ADDRESS.exec(address);
  expectForm(match !== null, 'chain');
  const { prefix, bytes } = decodeBech32(match[1]!, 20);
  expectForm(prefix === HUMAN_READABLE_PART, 'prefix');
  return bytes;
}

/** Avalanche's X, P and C chains. Accounts of its EVM (0x) sign as any EVM account, under another chain code. */
export const avalanche = defineFamily({
  addressForm: 'X-, P- or C- and bech32 with the prefix avax, in lower case',
  parseAddress(text) {
    keyHashOf(text);
    return text;
  },
  verify(text, field, sender) {
    const signature = decodeCb58(field, SIGNATURE_BYTES);
    const key = recoverCompressedKey(avalancheDigest(text), signature.subarray(0, 64), signature[64]);
    return equalBytes(hash160(key), keyHashOf(sender));
  },
});
