import { sha256 } from '@noble/hashes/sha2.js';
import { base58, base64 } from '@scure/base';
import { hash160, recoverCompressedKey } from './curves.ts';
import { decodeBase58, decodeCanonical, utf8 } from './encoding.ts';
import { defineFamily, expectForm } from './family.ts';

// The first byte is 24 although 21 bytes follow: the length was left from Bitcoin's text.
const PREFIX = utf8('\x18NULS Signed Message:\n');
const ADDRESS_PREFIX = 'NULSd';
/** Chain id 1 (int16, little-endian) and the type of an ordinary account. */
const ADDRESS_HEAD = Uint8Array.of(1, 0, 1);
const ADDRESS_BYTES = ADDRESS_HEAD.length + 20 + 1;
const SIGNATURE_BYTES = 65;
const HEADER_BASE = 27;

/** A length as Bitcoin writes it: one byte below 253, else a marker and two or four bytes, little-endian. */
function varint(value: number): Uint8Array {
  if (value < 0xfd) return Uint8Array.of(value);
  const long = value > 0xffff;
  const bytes = new Uint8Array(long ? 5 : 3);
  const view = new DataView(bytes.buffer);
  bytes[0] = long ? 0xfe : 0xfd;
  if (long) view.setUint32(1, value, true);
  else view.setUint16(1, value, true);
  return bytes;
}

/** The digest that wallets sign for a text. 32 bytes. */
export function nulsDigest(text: string): Uint8Array {
  const message = utf8(text);
  return sha256.create().update(PREFIX).update(varint(message.length)).update(message).digest();
}

export function nulsAddressOf(compressedKey: Uint8Array): string {
  const body = Uint8Array.of(...ADDRESS_HEAD, ...hash160(compressedKey));
  const check = body.reduce((sum, byte) => sum ^ byte, 0);
  return ADDRESS_PREFIX + base58.encode(Uint8Array.of(...body, check));
}

/** NULS 2: a recoverable ECDSA signature with its header byte first. */
export const nuls = defineFamily({
  addressForm: 'NULSd and base58 of an ordinary account of chain 1',
  parseAddress(text) {
    expectForm(text.startsWith(ADDRESS_PREFIX), 'prefix');
    const bytes = decodeBase58(text.slice(ADDRESS_PREFIX.length), ADDRESS_BYTES);
    expectForm(
      ADDRESS_HEAD.every((byte, i) => byte === bytes[i]),
      'chain or kind',
    );
    expectForm(bytes.reduce((sum, byte) => sum ^ byte, 0) === 0, 'check byte');
    return text;
  },
  verify(text, field, sender) {
    const signature = decodeCanonical(base64, field, SIGNATURE_BYTES);
    const recoveryId = signature[0]! - HEADER_BASE;
    return (
      nulsAddressOf(recoverCompressedKey(nulsDigest(text), signature.subarray(1), recoveryId)) === sender
    );
  },
});
