import { engine } from '#secp256k1';
import { hexToBytes } from '../hex.ts';
import { type EvmAddress, evmAddressOf } from './address.ts';
import { personalSignDigest } from './personal-digest.ts';
import type { Secp256k1Engine } from './secp256k1-port.ts';

/** Order of the curve's group (SEC 2, secp256k1), 32 bytes with the highest first. */
const CURVE_ORDER = hexToBytes('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141')!;
const SIGNATURE_BYTES = 65;

/** Whether 32 bytes are a number above zero and below the order. */
function isScalar(bytes: Uint8Array): boolean {
  if (bytes.every((byte) => byte === 0)) return false;
  const differs = bytes.findIndex((byte, index) => byte !== CURVE_ORDER[index]);
  return differs >= 0 && bytes[differs]! < CURVE_ORDER[differs]!;
}

/** `v` as wallets write it: 27 or 28, or bare 0 or 1. */
function recoveryIdOf(v: number | undefined): 0 | 1 | undefined {
  if (v === 0 || v === 27) return 0;
  if (v === 1 || v === 28) return 1;
  return undefined;
}

/** A signature by `personal_sign` as the curve takes it. */
export interface PersonalClaim {
  /** 32 bytes. */
  readonly digest: Uint8Array;
  /** r then s, each in [1, n-1]: 64 bytes. */
  readonly rs: Uint8Array;
  readonly recoveryId: 0 | 1;
}

/**
 * What a signature over `text` claims; undefined where it is malformed. Ranges are checked here and not left to the
 * engine, so that every node agrees on which signatures are valid.
 */
export function readPersonalClaim(text: string, signature: string): PersonalClaim | undefined {
  const bytes = hexToBytes(signature);
  if (bytes?.length !== SIGNATURE_BYTES) return undefined;
  const recoveryId = recoveryIdOf(bytes[64]);
  if (recoveryId === undefined || !isScalar(bytes.subarray(0, 32)) || !isScalar(bytes.subarray(32, 64)))
    return undefined;
  return { digest: personalSignDigest(text), rs: bytes.subarray(0, 64), recoveryId };
}

/** The only key that makes this signature, 65 bytes; undefined where none does. */
export const recoverPersonalKey = (
  { digest, rs, recoveryId }: PersonalClaim,
  using: Secp256k1Engine = engine,
): Uint8Array | undefined => using.recover(digest, rs, recoveryId);

/** The address that signed `text` by `personal_sign`, or undefined where the signature is malformed. */
export function recoverPersonalSigner(
  text: string,
  signature: string,
  using: Secp256k1Engine = engine,
): EvmAddress | undefined {
  const claim = readPersonalClaim(text, signature);
  const publicKey = claim && recoverPersonalKey(claim, using);
  return publicKey && evmAddressOf(publicKey);
}
