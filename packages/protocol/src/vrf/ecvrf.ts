import { concatBytes, type SecretScalar, type VrfGroup } from './group.ts';

/** A ciphersuite of RFC 9381 §5.5. */
export interface VrfSuite {
  /** suite_string, one byte. */
  readonly id: number;
  readonly name: string;
  /** The domain of the hash-to-curve suite (§5.4.1.2); absent where points are found by try and increment (§5.4.1.1). */
  readonly domain?: string;
}

/** One ciphersuite on one engine. Keys, inputs, proofs and outputs are the RFC's octet strings. */
export interface Ecvrf {
  readonly suite: VrfSuite;
  readonly publicKeyBytes: number;
  readonly proofBytes: number;
  readonly outputBytes: number;
  /** @param secretKey 32 bytes; throws RangeError where it is not a secret key of the suite */
  createProver(secretKey: Uint8Array): VrfProver;
  /** ECVRF_verify (§5.3) with the key validated: the output, or undefined where the proof does not hold. Never throws. */
  verify(publicKey: Uint8Array, alpha: Uint8Array, proof: Uint8Array): Uint8Array | undefined;
}

export interface VrfProver {
  readonly suite: VrfSuite;
  readonly publicKey: Uint8Array;
  /** ECVRF_prove (§5.1) and ECVRF_proof_to_hash (§5.2). */
  prove(alpha: Uint8Array): { readonly proof: Uint8Array; readonly output: Uint8Array };
}

const CHALLENGE_BYTES = 16;
const SECRET_KEY_BYTES = 32;
const TRIES_MAX = 256;

/** Domain separators in front (RFC 9381 §5); the one at the back is always 0. */
const FRONT = { encodeToCurve: 1, challenge: 2, output: 3 } as const;
const BACK = Uint8Array.of(0);

const equal = (a: Uint8Array, b: Uint8Array) =>
  a.length === b.length && a.every((byte, index) => byte === b[index]);

/** ECVRF_encode_to_curve (§5.4.1), salted with the public key. */
function encodeToCurve<P>(suite: VrfSuite, group: VrfGroup<P>, salt: Uint8Array, alpha: Uint8Array): P {
  if (suite.domain !== undefined && group.hashToCurve)
    return group.hashToCurve(concatBytes(salt, alpha), suite.domain);
  const front = Uint8Array.of(suite.id, FRONT.encodeToCurve);
  for (let counter = 0; counter < TRIES_MAX; counter++) {
    const bytes = concatBytes(front, salt, alpha, Uint8Array.of(counter), BACK);
    const point = group.pointOfHash(group.hash(bytes));
    if (point !== undefined) return point;
  }
  // Half of all tries succeed.
  throw new RangeError('no point of the curve was found for the input');
}

/** ECVRF_challenge_generation (§5.4.3) over the encodings of Y, H, Gamma, U and V. */
function challengeOf<P>(suite: VrfSuite, group: VrfGroup<P>, ...points: Uint8Array[]): Uint8Array {
  const front = Uint8Array.of(suite.id, FRONT.challenge);
  return group.hash(concatBytes(front, ...points, BACK)).subarray(0, CHALLENGE_BYTES);
}

function outputOf<P>(suite: VrfSuite, group: VrfGroup<P>, gamma: P): Uint8Array {
  const front = Uint8Array.of(suite.id, FRONT.output);
  return group.hash(concatBytes(front, group.encode(group.clearCofactor(gamma)), BACK));
}

/** A proof with every intermediate value that the RFC's vectors give. Secret: it has the nonce. */
export function proveInSteps<P>(
  suite: VrfSuite,
  group: VrfGroup<P>,
  secret: SecretScalar,
  publicKey: Uint8Array,
  alpha: Uint8Array,
) {
  const pointH = encodeToCurve(suite, group, publicKey, alpha);
  const h = group.encode(pointH);
  const gamma = group.multiply(pointH, secret.scalar);
  const encodedGamma = group.encode(gamma);
  const nonce = group.deriveNonce(secret, h);
  const u = group.encode(group.multiplyBase(nonce));
  const v = group.encode(group.multiply(pointH, nonce));
  const challenge = challengeOf(suite, group, publicKey, h, encodedGamma, u, v);
  const response = group.respond(nonce, challenge, secret);
  const proof = concatBytes(encodedGamma, challenge, response);
  return { h, nonce, u, v, proof, output: outputOf(suite, group, gamma) };
}

function verifyProof<P>(
  suite: VrfSuite,
  group: VrfGroup<P>,
  publicKey: Uint8Array,
  alpha: Uint8Array,
  proof: Uint8Array,
): Uint8Array | undefined {
  const { pointBytes, scalarBytes } = group;
  if (proof.length !== pointBytes + CHALLENGE_BYTES + scalarBytes) return undefined;
  const encodedGamma = proof.subarray(0, pointBytes);
  const challenge = proof.subarray(pointBytes, pointBytes + CHALLENGE_BYTES);
  const response = proof.subarray(pointBytes + CHALLENGE_BYTES);
  const key = group.decodeKey(publicKey);
  const gamma = group.decode(encodedGamma);
  if (key === undefined || gamma === undefined || !group.isReduced(response)) return undefined;
  const c = group.widen(challenge);
  const pointH = encodeToCurve(suite, group, publicKey, alpha);
  const u = group.encode(group.combineBase(response, c, key));
  const v = group.encode(group.combine(response, pointH, c, gamma));
  const expected = challengeOf(suite, group, publicKey, group.encode(pointH), encodedGamma, u, v);
  return equal(challenge, expected) ? outputOf(suite, group, gamma) : undefined;
}

/** A ciphersuite on a group. */
export function createEcvrf<P>(suite: VrfSuite, group: VrfGroup<P>): Ecvrf {
  return {
    suite,
    publicKeyBytes: group.pointBytes,
    proofBytes: group.pointBytes + CHALLENGE_BYTES + group.scalarBytes,
    outputBytes: group.hash(BACK).length,
    createProver(secretKey) {
      if (secretKey.length !== SECRET_KEY_BYTES)
        throw new RangeError(`a secret key is ${SECRET_KEY_BYTES} bytes`);
      const secret = group.deriveSecret(secretKey);
      const publicKey = group.encode(group.multiplyBase(secret.scalar));
      return {
        suite,
        publicKey,
        prove(alpha) {
          const { proof, output } = proveInSteps(suite, group, secret, publicKey, alpha);
          return { proof, output };
        },
      };
    },
    verify(publicKey, alpha, proof) {
      try {
        return verifyProof(suite, group, publicKey, alpha, proof);
      } catch {
        // P-256 has no encoding for the identity, which only a proof made to fail leads to.
        return undefined;
      }
    },
  };
}
