import { ED25519_TORSION_SUBGROUP } from '@noble/curves/ed25519.js';
import { bytesToNumberLE } from '@noble/curves/utils.js';
import { bytesToHex } from '../hex.ts';
import { createEcvrf } from './ecvrf.ts';
import { deriveEdwardsSecret, pureEdwards25519 } from './edwards25519.ts';
import { concatBytes, type VrfGroup } from './group.ts';
import { multiplyLittleEndian } from './limbs.ts';
import { createEngine, pureVrfEngine, VRF_SUITES, type VrfEngine } from './suites.ts';

/** The functions of libsodium that are used here. Each fills its first argument; a failure of libsodium throws. */
export interface Sodium {
  crypto_scalarmult_ed25519_noclamp(result: Uint8Array, scalar: Uint8Array, point: Uint8Array): void;
  crypto_scalarmult_ed25519_base_noclamp(result: Uint8Array, scalar: Uint8Array): void;
  crypto_core_ed25519_add(result: Uint8Array, a: Uint8Array, b: Uint8Array): void;
  crypto_core_ed25519_sub(result: Uint8Array, a: Uint8Array, b: Uint8Array): void;
  crypto_core_ed25519_scalar_reduce(result: Uint8Array, wide: Uint8Array): void;
  crypto_core_ed25519_scalar_add(result: Uint8Array, a: Uint8Array, b: Uint8Array): void;
  crypto_hash_sha512(result: Uint8Array, bytes: Uint8Array): void;
}

const POINT_BYTES = 32;
const WIDE_BYTES = 64;
const HASH_BYTES = 64;

const isZero = (bytes: Uint8Array) => bytes.every((byte) => byte === 0);
const IDENTITY = Uint8Array.of(1, ...new Uint8Array(POINT_BYTES - 1));
const SMALL_ORDER: ReadonlySet<string> = new Set(ED25519_TORSION_SUBGROUP);
const hasSmallOrder = (encoding: Uint8Array) => SMALL_ORDER.has(bytesToHex(encoding));

/** Whether y < 2^255 - 19: libsodium also takes the few encodings above, which RFC 8032 §5.1.3 refuses. */
function isCanonical(bytes: Uint8Array): boolean {
  if (bytes.length !== POINT_BYTES) return false;
  if ((bytes[31]! & 0x7f) !== 0x7f || bytes[0]! < 0xed) return true;
  return bytes.subarray(1, 31).some((byte) => byte !== 0xff);
}

function multiplyPure(point: Uint8Array, scalar: Uint8Array): Uint8Array {
  const decoded = pureEdwards25519.decode(point);
  if (decoded === undefined) throw new RangeError('not a point of the curve');
  return decoded.multiplyUnsafe(bytesToNumberLE(scalar)).toBytes();
}

/** libsodium's functions, each with a result of its own. */
function createOperations(sodium: Sodium) {
  const hash = (bytes: Uint8Array) => {
    const result = new Uint8Array(HASH_BYTES);
    sodium.crypto_hash_sha512(result, bytes);
    return result;
  };
  const reduce = (wide: Uint8Array) => {
    const result = new Uint8Array(POINT_BYTES);
    sodium.crypto_core_ed25519_scalar_reduce(result, wide);
    return result;
  };
  const multiply = (point: Uint8Array, scalar: Uint8Array) => {
    const result = new Uint8Array(POINT_BYTES);
    sodium.crypto_scalarmult_ed25519_noclamp(result, scalar, point);
    return result;
  };
  const multiplyBase = (scalar: Uint8Array) => {
    const result = new Uint8Array(POINT_BYTES);
    sodium.crypto_scalarmult_ed25519_base_noclamp(result, scalar);
    return result;
  };
  /** Times 8 by three doublings: far less than a multiplication. Any point of the curve, torsion or not. */
  const clearCofactor = (point: Uint8Array) => {
    const result = new Uint8Array(POINT_BYTES);
    sodium.crypto_core_ed25519_add(result, point, point);
    sodium.crypto_core_ed25519_add(result, result, result);
    sodium.crypto_core_ed25519_add(result, result, result);
    return result;
  };
  const subtract = (a: Uint8Array, b: Uint8Array) => {
    const result = new Uint8Array(POINT_BYTES);
    sodium.crypto_core_ed25519_sub(result, a, b);
    return result;
  };
  const addScalars = (a: Uint8Array, b: Uint8Array) => {
    const result = new Uint8Array(POINT_BYTES);
    sodium.crypto_core_ed25519_scalar_add(result, a, b);
    return result;
  };
  return { hash, reduce, multiply, multiplyBase, clearCofactor, subtract, addScalars };
}

/** Points are their encodings: libsodium decodes at each use, and throws where one is not of the prime-order subgroup. */
export function createSodiumGroup(sodium: Sodium): VrfGroup<Uint8Array> {
  const { hash, reduce, multiply, multiplyBase, clearCofactor, subtract, addScalars } =
    createOperations(sodium);
  /**
   * libsodium refuses points outside the prime-order subgroup and products that are the identity; the RFC's verifier does
   * not. Such a point, which only a dishonest key holder makes, is left to the pure engine, so that both always agree.
   */
  const multiplyPublic = (point: Uint8Array, scalar: Uint8Array) => {
    try {
      return multiply(point, scalar);
    } catch {
      return multiplyPure(point, scalar);
    }
  };
  const multiplyBasePublic = (scalar: Uint8Array) => (isZero(scalar) ? IDENTITY : multiplyBase(scalar));
  const decode = (bytes: Uint8Array) => (isCanonical(bytes) ? bytes : undefined);
  return {
    pointBytes: POINT_BYTES,
    scalarBytes: POINT_BYTES,
    hash,
    decode,
    encode: (point) => point,
    decodeKey: (bytes) => (hasSmallOrder(bytes) ? undefined : decode(bytes)),
    pointOfHash(bytes) {
      const candidate = bytes.subarray(0, POINT_BYTES);
      if (!isCanonical(candidate)) return undefined;
      try {
        const point = clearCofactor(candidate);
        return hasSmallOrder(point) ? undefined : point;
      } catch {
        return undefined;
      }
    },
    // Once per proof and of public bytes only; libsodium's own map follows another draft.
    hashToCurve: (message, domain) => pureEdwards25519.hashToCurve!(message, domain).toBytes(),
    multiply,
    multiplyBase,
    combineBase: (scalar, challenge, point) =>
      subtract(multiplyBasePublic(scalar), multiplyPublic(point, challenge)),
    combine: (scalar, left, challenge, right) =>
      subtract(multiplyPublic(left, scalar), multiplyPublic(right, challenge)),
    clearCofactor,
    isReduced: pureEdwards25519.isReduced,
    widen: pureEdwards25519.widen,
    deriveSecret: (secretKey) => deriveEdwardsSecret(hash(secretKey)),
    deriveNonce: ({ nonceKey }, encodedPoint) => reduce(hash(concatBytes(nonceKey, encodedPoint))),
    respond: (nonce, challenge, { scalar }) =>
      addScalars(reduce(multiplyLittleEndian(challenge, scalar, WIDE_BYTES)), nonce),
  };
}

/** Undefined where there is no build for this machine. */
export async function loadSodium(): Promise<Sodium | undefined> {
  try {
    // A variable keeps the type checker and browsers' bundlers away from a package that may be absent.
    const specifier = 'sodium-native';
    const { default: sodium } = (await import(specifier)) as { default: Sodium };
    return sodium;
  } catch {
    return undefined;
  }
}

/** libsodium's group functions, whose time does not depend on secrets; P-256 stays pure. */
export async function loadNativeVrfEngine(): Promise<VrfEngine | undefined> {
  const sodium = await loadSodium();
  if (!sodium) return undefined;
  const group = createSodiumGroup(sodium);
  return createEngine('native', [
    pureVrfEngine.find(VRF_SUITES.p256Tai.id)!,
    createEcvrf(VRF_SUITES.edwards25519Tai, group),
    createEcvrf(VRF_SUITES.edwards25519Ell2, group),
  ]);
}

/** The best engine that this machine has. */
export async function loadVrfEngine(): Promise<VrfEngine> {
  return (await loadNativeVrfEngine()) ?? pureVrfEngine;
}
