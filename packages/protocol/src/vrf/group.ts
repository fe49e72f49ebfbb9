/** What a key holder knows: the secret scalar, and the secret that nonces are derived from. */
export interface SecretScalar {
  /** In the suite's own byte order. */
  readonly scalar: Uint8Array;
  readonly nonceKey: Uint8Array;
}

/**
 * The group of a ciphersuite (RFC 9381 §5.5). Points are whatever the engine likes best; scalars are bytes in the suite's
 * own byte order, as long as the group's order, so that an engine never has to read them as numbers.
 */
export interface VrfGroup<Point> {
  readonly pointBytes: number;
  readonly scalarBytes: number;
  hash(bytes: Uint8Array): Uint8Array;
  /** string_to_point. Undefined where the bytes are no point; an engine may also find out only when it computes. */
  decode(bytes: Uint8Array): Point | undefined;
  encode(point: Point): Uint8Array;
  /** ECVRF_validate_key (RFC 9381 §5.4.5): undefined for bytes that are no point, or one of small order. */
  decodeKey(bytes: Uint8Array): Point | undefined;
  /** interpret_hash_value_as_a_point, then times the cofactor; undefined where that is no point, or the identity. */
  pointOfHash(hash: Uint8Array): Point | undefined;
  /** ECVRF_encode_to_curve_h2c_suite (RFC 9381 §5.4.1.2), where the group has one. */
  hashToCurve?(message: Uint8Array, domain: string): Point;
  /** Takes secret scalars: the time it takes does not depend on the scalar, as far as the engine can promise it. */
  multiply(point: Point, scalar: Uint8Array): Point;
  multiplyBase(scalar: Uint8Array): Point;
  /** scalar * B - challenge * point, for what everybody may know. */
  combineBase(scalar: Uint8Array, challenge: Uint8Array, point: Point): Point;
  /** scalar * left - challenge * right, for what everybody may know. */
  combine(scalar: Uint8Array, left: Point, challenge: Uint8Array, right: Point): Point;
  clearCofactor(point: Point): Point;
  /** Whether the number is below the group's order. */
  isReduced(scalar: Uint8Array): boolean;
  /** The challenge's leading bytes as a scalar. */
  widen(challenge: Uint8Array): Uint8Array;
  deriveSecret(secretKey: Uint8Array): SecretScalar;
  /** ECVRF_nonce_generation (RFC 9381 §5.4.2). */
  deriveNonce(secret: SecretScalar, encodedPoint: Uint8Array): Uint8Array;
  /** (nonce + challenge * secret) mod the group's order. */
  respond(nonce: Uint8Array, challenge: Uint8Array, secret: SecretScalar): Uint8Array;
}

export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}
