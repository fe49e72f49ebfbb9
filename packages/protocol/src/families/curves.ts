import { ed25519 } from '@noble/curves/ed25519.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { ripemd160 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { engine } from '#secp256k1';
import type { Secp256k1Engine } from '../evm/secp256k1-port.ts';
import { bytesToHex } from '../hex.ts';
import { equalBytes } from './encoding.ts';
import { expectForm } from './family.ts';

const CURVE_ORDER = secp256k1.Point.Fn.ORDER;

function isScalar(bytes: Uint8Array): boolean {
  const value = BigInt(`0x${bytesToHex(bytes)}`);
  return value > 0n && value < CURVE_ORDER;
}

/**
 * r and s of an ECDSA signature: each in [1, n-1]. Both s and n-s are taken, as deployed nodes do: a signature is not
 * part of a message's identity, so a second spelling of it names the same message. Throws.
 */
function expectScalars(rs: Uint8Array): void {
  const valid = rs.length === 64 && isScalar(rs.subarray(0, 32)) && isScalar(rs.subarray(32));
  expectForm(valid, 'r or s out of range');
}

function compress(key: Uint8Array): Uint8Array {
  return Uint8Array.of(key[64]! & 1 ? 3 : 2, ...key.subarray(1, 33));
}

/**
 * The compressed public key (33 bytes) that made a signature (SEC 1 §4.1.6). Throws where there is none.
 *
 * @param digest 32 bytes
 * @param rs 64 bytes
 * @param recoveryId 0 or 1; 2 and 3 (a point with x of n or above, once in 2^127) are refused as in the EVM family
 */
export function recoverCompressedKey(
  digest: Uint8Array,
  rs: Uint8Array,
  recoveryId: number | undefined,
  using: Secp256k1Engine = engine,
): Uint8Array {
  expectScalars(rs);
  expectForm(recoveryId === 0 || recoveryId === 1, 'recovery id');
  const key = using.recover(digest, rs, recoveryId);
  expectForm(key !== undefined, 'no key fits');
  return compress(key);
}

/**
 * ECDSA over secp256k1 by a known key: whether it is one of the two that can be recovered. That is SEC 1 §4.1.4 but
 * for points with x of n or above, so that all families keep one rule, and it runs on the engine, which is native on
 * nodes. Throws where r or s is out of range.
 *
 * @param digest 32 bytes
 * @param rs 64 bytes
 * @param publicKey compressed, 33 bytes
 */
export function verifyEcdsa(
  digest: Uint8Array,
  rs: Uint8Array,
  publicKey: Uint8Array,
  using: Secp256k1Engine = engine,
): boolean {
  expectScalars(rs);
  return ([0, 1] as const).some((recoveryId) => {
    const key = using.recover(digest, rs, recoveryId);
    return key !== undefined && equalBytes(compress(key), publicKey);
  });
}

/**
 * Ed25519 by one exact rule, since RFC 8032 leaves room and nodes must agree: the encodings of A and R are canonical,
 * S < L, A is not of small order, and the equation is the one with the cofactor, 8SB = 8R + 8kA ("Taming the many
 * EdDSAs", algorithm 2). ZIP-215 is as exact but takes keys of small order, under which anyone can sign: the address of
 * Solana's System Program (32 zero bytes) is one.
 */
export function verifyEd25519(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  return ed25519.verify(signature, message, publicKey, { zip215: false });
}

/** RIPEMD-160 of SHA-256, as in Bitcoin's addresses: 20 bytes. */
export function hash160(bytes: Uint8Array): Uint8Array {
  return ripemd160(sha256(bytes));
}
