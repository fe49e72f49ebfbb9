import { sha256 } from '@noble/hashes/sha2.js';
import { type BytesCoder, base58, bech32, createBase58check } from '@scure/base';
import { scanJsonObject } from '../json/scan.ts';
import { createParser } from '../schema.ts';
import type { Static, TSchema } from '../type.ts';
import { expectForm } from './family.ts';

const encoder = new TextEncoder();

export const utf8 = (text: string): Uint8Array => encoder.encode(text);
export const base58check: BytesCoder = createBase58check(sha256);

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/**
 * Bytes of a text that is their only spelling. A coder may be the platform's own, and platforms differ in what they
 * let pass, so the text is compared with what its bytes encode to. Throws.
 *
 * @param lengthBytes the one length accepted
 */
export function decodeCanonical(coder: BytesCoder, text: string, lengthBytes: number): Uint8Array {
  const bytes = coder.decode(text);
  expectForm(bytes.length === lengthBytes && coder.encode(bytes) === text, 'not canonical');
  return bytes;
}

export const decodeBase58 = (text: string, lengthBytes: number) => decodeCanonical(base58, text, lengthBytes);

/** Bech32 in lower case (BIP 173; mixed and upper case are other spellings of the same). Throws. */
export function decodeBech32(text: string, lengthBytes: number): { prefix: string; bytes: Uint8Array } {
  const { prefix, bytes } = bech32.decodeToBytes(text);
  expectForm(bytes.length === lengthBytes && encodeBech32(prefix, bytes) === text, 'not canonical');
  return { prefix, bytes };
}

function encodeBech32(prefix: string, bytes: Uint8Array): string {
  return bech32.encode(prefix, bech32.toWords(bytes));
}

/** A reader of signatures that are JSON text: one object, no repeated and no unknown keys. It throws. */
export function createJsonSignatureParser<T extends TSchema>(schema: T): (text: string) => Static<T> {
  const parse = createParser(schema, 'signature', 'INVALID_SIGNATURE');
  return (text) => parse(scanJsonObject(text).value);
}
