import { ed25519, ed25519_hasher } from '@noble/curves/ed25519.js';
import { bytesToNumberLE, numberToBytesLE } from '@noble/curves/utils.js';
import { sha512 } from '@noble/hashes/sha2.js';
import { concatBytes, type VrfGroup } from './group.ts';

const { Point } = ed25519;
type Point = InstanceType<typeof Point>;
const ORDER = Point.Fn.ORDER;
const SCALAR_BYTES = 32;

const toBytes = (value: bigint) => numberToBytesLE(value, SCALAR_BYTES);

function decode(bytes: Uint8Array): Point | undefined {
  try {
    // Strict: only the one encoding that RFC 8032 §5.1.3 gives a point.
    return Point.fromBytes(bytes, false);
  } catch {
    return undefined;
  }
}

function decodeOutsideTorsion(bytes: Uint8Array): Point | undefined {
  const point = decode(bytes);
  return point === undefined || point.isSmallOrder() ? undefined : point;
}

/** multiplyUnsafe takes zero, and no secrets. */
const combine = (scalar: Uint8Array, left: Point, challenge: Uint8Array, right: Point) =>
  left.multiplyUnsafe(bytesToNumberLE(scalar)).subtract(right.multiplyUnsafe(bytesToNumberLE(challenge)));

/** The clamped scalar of a secret key (RFC 8032 §5.1.5) and the half of its hash that nonces come from. */
export function deriveEdwardsSecret(hash: Uint8Array): { scalar: Uint8Array; nonceKey: Uint8Array } {
  const scalar = hash.slice(0, SCALAR_BYTES);
  scalar[0]! &= 248;
  scalar[31]! &= 127;
  scalar[31]! |= 64;
  return { scalar, nonceKey: hash.slice(SCALAR_BYTES) };
}

/**
 * edwards25519 in plain JavaScript, for browsers and where there is no native library. Its prover computes with BigInt,
 * whose time depends on the numbers: do not run it where others can time it finely.
 */
export const pureEdwards25519: VrfGroup<Point> = {
  pointBytes: 32,
  scalarBytes: SCALAR_BYTES,
  hash: sha512,
  decode,
  encode: (point) => point.toBytes(),
  decodeKey: decodeOutsideTorsion,
  pointOfHash: (hash) => decodeOutsideTorsion(hash.subarray(0, 32))?.clearCofactor(),
  hashToCurve: (message, domain) => ed25519_hasher.encodeToCurve(message, { DST: domain }) as Point,
  multiply: (point, scalar) => point.multiply(bytesToNumberLE(scalar) % ORDER),
  multiplyBase: (scalar) => Point.BASE.multiply(bytesToNumberLE(scalar) % ORDER),
  combineBase: (scalar, challenge, point) => combine(scalar, Point.BASE, challenge, point),
  combine,
  clearCofactor: (point) => point.clearCofactor(),
  isReduced: (scalar) => bytesToNumberLE(scalar) < ORDER,
  widen: (challenge) => concatBytes(challenge, new Uint8Array(SCALAR_BYTES - challenge.length)),
  deriveSecret: (secretKey) => deriveEdwardsSecret(sha512(secretKey)),
  deriveNonce: ({ nonceKey }, encodedPoint) =>
    toBytes(bytesToNumberLE(sha512(concatBytes(nonceKey, encodedPoint))) % ORDER),
  respond: (nonce, challenge, { scalar }) =>
    toBytes((bytesToNumberLE(nonce) + bytesToNumberLE(challenge) * bytesToNumberLE(scalar)) % ORDER),
};
