import { p256 } from '@noble/curves/nist.js';
import { bytesToNumberBE, numberToBytesBE } from '@noble/curves/utils.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { concatBytes, type VrfGroup } from './group.ts';

const { Point } = p256;
type Point = InstanceType<typeof Point>;
const ORDER = Point.Fn.ORDER;
const SCALAR_BYTES = 32;
const POINT_BYTES = 33;
/** Each try of RFC 6979 fails with a chance below 2^-32. */
const NONCE_TRIES_MAX = 64;

const toBytes = (value: bigint) => numberToBytesBE(value, SCALAR_BYTES);

function decode(bytes: Uint8Array): Point | undefined {
  if (bytes.length !== POINT_BYTES) return undefined;
  try {
    return Point.fromBytes(bytes);
  } catch {
    return undefined;
  }
}

const combine = (scalar: Uint8Array, left: Point, challenge: Uint8Array, right: Point) =>
  left.multiplyUnsafe(bytesToNumberBE(scalar)).subtract(right.multiplyUnsafe(bytesToNumberBE(challenge)));

/** The deterministic nonce of RFC 6979 §3.2 with HMAC-SHA256 (RFC 9381 §5.4.2.1). */
function deriveNonce(scalar: Uint8Array, message: Uint8Array): Uint8Array {
  const digest = toBytes(bytesToNumberBE(sha256(message)) % ORDER);
  let value = new Uint8Array(SCALAR_BYTES).fill(1);
  let key = new Uint8Array(SCALAR_BYTES);
  const step = (...more: Uint8Array[]) => {
    key = hmac(sha256, key, concatBytes(value, ...more)) as Uint8Array<ArrayBuffer>;
    value = hmac(sha256, key, value) as Uint8Array<ArrayBuffer>;
  };
  step(Uint8Array.of(0), scalar, digest);
  step(Uint8Array.of(1), scalar, digest);
  for (let tries = 0; tries < NONCE_TRIES_MAX; tries++) {
    value = hmac(sha256, key, value) as Uint8Array<ArrayBuffer>;
    const nonce = bytesToNumberBE(value);
    if (nonce > 0n && nonce < ORDER) return value;
    step(Uint8Array.of(0));
  }
  throw new RangeError('no nonce below the order of the group was found');
}

function deriveSecret(secretKey: Uint8Array) {
  const scalar = bytesToNumberBE(secretKey);
  if (secretKey.length !== SCALAR_BYTES || scalar === 0n || scalar >= ORDER)
    throw new RangeError('a P-256 secret key is 32 bytes, from 1 to the order of the group less 1');
  return { scalar: secretKey.slice(), nonceKey: secretKey.slice() };
}

/** P-256 in plain JavaScript. As with edwards25519, its prover is not for places where others can time it finely. */
export const pureP256: VrfGroup<Point> = {
  pointBytes: POINT_BYTES,
  scalarBytes: SCALAR_BYTES,
  hash: sha256,
  decode,
  encode: (point) => point.toBytes(),
  decodeKey: decode,
  pointOfHash: (hash) => decode(concatBytes(Uint8Array.of(2), hash)),
  multiply: (point, scalar) => point.multiply(bytesToNumberBE(scalar)),
  multiplyBase: (scalar) => Point.BASE.multiply(bytesToNumberBE(scalar)),
  combineBase: (scalar, challenge, point) => combine(scalar, Point.BASE, challenge, point),
  combine,
  clearCofactor: (point) => point,
  isReduced: (scalar) => bytesToNumberBE(scalar) < ORDER,
  widen: (challenge) => concatBytes(new Uint8Array(SCALAR_BYTES - challenge.length), challenge),
  deriveSecret,
  deriveNonce: ({ nonceKey }, encodedPoint) => deriveNonce(nonceKey, encodedPoint),
  respond: (nonce, challenge, { scalar }) =>
    toBytes((bytesToNumberBE(nonce) + bytesToNumberBE(challenge) * bytesToNumberBE(scalar)) % ORDER),
};
