import { blake2b } from '@noble/hashes/blake2.js';
import { base58 } from '@scure/base';
import { verify as verifySr25519 } from '@scure/sr25519';
import { hexToBytes } from '../hex.ts';
import { Type } from '../type.ts';
import { createJsonSignatureParser, equalBytes, utf8 } from './encoding.ts';
import { defineFamily, expectForm } from './family.ts';

const parseSignature = createJsonSignatureParser(
  Type.Object(
    { curve: Type.Optional(Type.Literal('sr25519')), data: Type.String({ pattern: '^0x[0-9a-fA-F]{128}$' }) },
    { additionalProperties: false },
  ),
);

const KEY_BYTES = 32;
const CHECKSUM_BYTES = 2;
const CHECKSUM_CONTEXT = utf8('SS58PRE');

/** Network prefixes below 64 take one byte; from 64 to 16383 two, of which the first has 01 on top. */
function prefixLengthOf(bytes: Uint8Array): number {
  const [first = 0, second = 0] = bytes;
  if (first < 64) return 1;
  expectForm(first < 128, 'a reserved prefix');
  const prefix = ((first & 0x3f) << 2) | (second >> 6) | ((second & 0x3f) << 8);
  expectForm(prefix >= 64, 'a short prefix written long');
  return 2;
}

/** The public key of an SS58 address of any network. Throws. */
function publicKeyOf(address: string): Uint8Array {
  const bytes = base58.decode(address);
  expectForm(base58.encode(bytes) === address, 'not canonical');
  const prefixBytes = prefixLengthOf(bytes);
  expectForm(bytes.length === prefixBytes + KEY_BYTES + CHECKSUM_BYTES, 'length');
  const body = bytes.subarray(0, -CHECKSUM_BYTES);
  const hash = blake2b(Uint8Array.of(...CHECKSUM_CONTEXT, ...body));
  expectForm(equalBytes(hash.subarray(0, CHECKSUM_BYTES), bytes.subarray(-CHECKSUM_BYTES)), 'checksum');
  return body.subarray(prefixBytes);
}

/**
 * Substrate: sr25519 in the context `substrate`, over the bytes or, since wallets protect people from signing
 * transactions by mistake, over the bytes within `<Bytes>`.
 */
export const substrate = defineFamily({
  addressForm: 'SS58 of a 32-byte public key',
  parseAddress(text) {
    publicKeyOf(text);
    return text;
  },
  verify(text, field, sender) {
    const signature = hexToBytes(parseSignature(field).data)!;
    const publicKey = publicKeyOf(sender);
    return [text, `<Bytes>${text}</Bytes>`].some((signed) =>
      verifySr25519(utf8(signed), signature, publicKey),
    );
  },
});
