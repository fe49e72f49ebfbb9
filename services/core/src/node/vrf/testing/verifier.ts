import { createHash } from 'node:crypto';

/**
 * A second verifier of the node's tokens, written from the text of RFC 9381 (suite 3), RFC 8032 and docs/randomness.md with
 * whole numbers. It shares no code with the product, and is slow.
 */

const P = 2n ** 255n - 19n;
const Q = 2n ** 252n + 27742317777372353535851937790883648493n;
const mod = (value: bigint, modulus = P) => ((value % modulus) + modulus) % modulus;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = mod(base);
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

/** By Euclid. */
function inverse(value: bigint): bigint {
  let [a, b, x, y] = [mod(value), P, 1n, 0n];
  while (a > 1n) {
    const quotient = b / a;
    [a, b] = [b % a, a];
    [x, y] = [y - quotient * x, x];
  }
  return mod(x);
}

const D = mod(-121665n * inverse(121666n));
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n);

type Affine = readonly [x: bigint, y: bigint];
const NEUTRAL: Affine = [0n, 1n];

const littleEndian = (bytes: Uint8Array) =>
  BigInt(`0x${Buffer.from(bytes).reverse().toString('hex') || '0'}`);
const sha512 = (...parts: readonly Uint8Array[]) =>
  createHash('sha512').update(Buffer.concat(parts)).digest();

/** x from y and its lowest bit (RFC 8032 §5.1.3). */
function recoverX(y: bigint, odd: bigint): bigint | undefined {
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n));
  let x = power(square, (P + 3n) / 8n);
  if (mod(x * x) !== square) x = mod(x * ROOT_OF_MINUS_ONE);
  if (mod(x * x) !== square) return undefined;
  if (x === 0n && odd === 1n) return undefined;
  return (x & 1n) === odd ? x : P - x;
}

function stringToPoint(bytes: Uint8Array): Affine | undefined {
  const number = littleEndian(bytes);
  const y = number & (2n ** 255n - 1n);
  if (y >= P) return undefined;
  const x = recoverX(y, number >> 255n);
  return x === undefined ? undefined : [x, y];
}

function pointToString([x, y]: Affine): Uint8Array {
  const number = y | ((x & 1n) << 255n);
  return Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse();
}

/** Homogeneous, so that only its last step divides: x = X/Z, y = Y/Z, x y = T/Z (RFC 8032 §5.1.4). */
type Extended = readonly [x: bigint, y: bigint, z: bigint, t: bigint];

const extend = ([x, y]: Affine): Extended => [x, y, 1n, mod(x * y)];

function reduce([x, y, z]: Extended): Affine {
  const scale = inverse(z);
  return [mod(x * scale), mod(y * scale)];
}

/** Adds two points, or a point to itself (RFC 8032 §5.1.4). */
function addExtended([x1, y1, z1, t1]: Extended, [x2, y2, z2, t2]: Extended): Extended {
  const a = mod((y1 - x1) * (y2 - x2));
  const b = mod((y1 + x1) * (y2 + x2));
  const c = mod(2n * D * mod(t1 * t2));
  const d = mod(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

const add = (one: Affine, other: Affine) => reduce(addExtended(extend(one), extend(other)));

function times(scalar: bigint, point: Affine): Affine {
  const addend = extend(point);
  let result = extend(NEUTRAL);
  for (const bit of scalar.toString(2)) {
    result = addExtended(result, result);
    if (bit === '1') result = addExtended(result, addend);
  }
  return reduce(result);
}

const BASE_Y = mod(4n * inverse(5n));
const BASE: Affine = [recoverX(BASE_Y, 0n)!, BASE_Y];
const negate = ([x, y]: Affine): Affine => [mod(-x), y];
const isNeutral = ([x, y]: Affine) => x === 0n && y === 1n;

function encodeToCurve(publicKey: Uint8Array, alpha: Uint8Array): Affine {
  for (let counter = 0; counter < 256; counter++) {
    const hash = sha512(Uint8Array.of(3, 1), publicKey, alpha, Uint8Array.of(counter, 0));
    const candidate = stringToPoint(hash.subarray(0, 32));
    if (candidate === undefined) continue;
    const point = times(8n, candidate);
    if (!isNeutral(point)) return point;
  }
  throw new Error('no point');
}

/** ECVRF_verify of RFC 9381 §5.3, with key validation: beta_string, or undefined. */
function verify(publicKey: Uint8Array, alpha: Uint8Array, proof: Uint8Array): Uint8Array | undefined {
  const y = stringToPoint(publicKey);
  const gamma = stringToPoint(proof.subarray(0, 32));
  const c = littleEndian(proof.subarray(32, 48));
  const s = littleEndian(proof.subarray(48, 80));
  if (!y || !gamma || isNeutral(times(8n, y)) || s >= Q) return undefined;
  const h = encodeToCurve(publicKey, alpha);
  const u = add(times(s, BASE), negate(times(c, y)));
  const v = add(times(s, h), negate(times(c, gamma)));
  const points = [y, h, gamma, u, v].map(pointToString);
  const challenge = sha512(Uint8Array.of(3, 2), ...points, Uint8Array.of(0)).subarray(0, 16);
  if (littleEndian(challenge) !== c) return undefined;
  return sha512(Uint8Array.of(3, 3), pointToString(times(8n, gamma)), Uint8Array.of(0));
}

/** The values that a seed and a token lead to, or undefined where the proof does not hold. */
export function valuesOfToken(seed: string, token: string): number[] | undefined {
  const bytes = Buffer.from(token.slice(2), 'hex');
  if (bytes.length !== 132 || bytes[0] !== 1 || bytes[1] !== 3) return undefined;
  const range = bytes.subarray(34, 52);
  const [min, max, count] = [range.readBigInt64BE(0), range.readBigInt64BE(8), range.readUInt16BE(16)];
  const alpha = Buffer.concat([Buffer.from('net-vrf-input-1\n'), range, Buffer.from(seed, 'utf8')]);
  const beta = verify(bytes.subarray(2, 34), alpha, bytes.subarray(52));
  if (beta === undefined) return undefined;
  const span = max - min + 1n;
  const values: number[] = [];
  for (let block = 0; values.length < count; block++) {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(block);
    const words = sha512(Buffer.from('net-vrf-stream-1\n'), beta, counter);
    for (let at = 0; at < 64 && values.length < count; at += 8) {
      const word = words.readBigUInt64BE(at);
      if (word < 2n ** 64n - (2n ** 64n % span)) values.push(Number(min + (word % span)));
    }
  }
  return values;
}
