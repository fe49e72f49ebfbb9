import { bytesToHex, hexToBytes } from '../hex.ts';
import type { Ecvrf, VrfProver } from './ecvrf.ts';
import { concatBytes } from './group.ts';
import { reduceToRange } from './reduce.ts';
import {
  encodeRange,
  encodeVrfInput,
  parseRange,
  RANGE_BYTES,
  seedBytesOf,
  type VrfRange,
  type VrfRequest,
} from './request.ts';
import { pureVrfEngine, type VrfEngine } from './suites.ts';

/**
 * The `proof` of an answer: `0x` and lower-case hexadecimal digits of version (1 byte), suite (1), public key (32, or 33
 * on P-256), min (8), max (8), count (2), the proof of RFC 9381 (80, or 81). It says everything but the seed.
 */
export interface VrfToken {
  readonly ecvrf: Ecvrf;
  readonly publicKey: Uint8Array;
  readonly range: VrfRange;
  readonly proof: Uint8Array;
}

/** An answer and its proof. */
export interface VrfAnswer extends VrfRequest {
  /** The first of the values. */
  readonly value: number;
  readonly values: number[];
  readonly proof: string;
  /** Hexadecimal, without `0x`. */
  readonly publicKey: string;
}

/** What somebody says was answered: at least one of `value` and `values`. */
export interface VrfClaim {
  readonly seed: string;
  readonly value?: number | undefined;
  readonly values?: readonly number[] | undefined;
  readonly proof: string;
  /** What else the claim says of the token: it must be so. */
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly count?: number | undefined;
  readonly public_key?: string | undefined;
}

export type VrfReasonCode =
  | 'VRF_PROOF_MALFORMED'
  | 'VRF_PROOF_REFUTED'
  | 'VRF_VALUE_MISMATCH'
  | 'VRF_KEY_UNKNOWN';

export interface VrfReason {
  readonly code: VrfReasonCode;
  readonly message: string;
}

/** What the token itself says; true only where `valid`. */
export interface VrfStatement extends VrfRange {
  readonly suite: string;
  /** Hexadecimal, without `0x`. */
  readonly publicKey: string;
}

export type VrfVerdict =
  | ({ readonly valid: true; readonly values: number[] } & VrfStatement)
  | ({ readonly valid: false; readonly reason: VrfReason } & Partial<VrfStatement>);

const TOKEN_VERSION = 1;
const HEAD_BYTES = 2;

function encodeToken(suiteId: number, publicKey: Uint8Array, range: VrfRange, proof: Uint8Array): string {
  const head = Uint8Array.of(TOKEN_VERSION, suiteId);
  return `0x${bytesToHex(concatBytes(head, publicKey, encodeRange(range), proof))}`;
}

/** A token, or in a sentence why the text is none. */
function parseVrfToken(text: string, engine: VrfEngine = pureVrfEngine): VrfToken | string {
  const bytes = /^0x[0-9a-f]*$/.test(text) ? hexToBytes(text) : undefined;
  if (bytes === undefined) return 'the proof is not 0x and an even number of lower-case hexadecimal digits';
  if (bytes.length < HEAD_BYTES) return 'the proof is too short';
  if (bytes[0] !== TOKEN_VERSION) return `the proof has version ${bytes[0]}; this is known: ${TOKEN_VERSION}`;
  const ecvrf = engine.find(bytes[1]!);
  if (ecvrf === undefined) return `the proof has suite ${bytes[1]}, which is not known here`;
  const rangeAt = HEAD_BYTES + ecvrf.publicKeyBytes;
  const proofAt = rangeAt + RANGE_BYTES;
  if (bytes.length !== proofAt + ecvrf.proofBytes)
    return `the proof has ${bytes.length} bytes; with its suite it has ${proofAt + ecvrf.proofBytes}`;
  const range = parseRange(bytes.subarray(rangeAt, proofAt));
  if (range === undefined) return 'the proof has a range or a count that cannot be asked for';
  return { ecvrf, publicKey: bytes.slice(HEAD_BYTES, rangeAt), range, proof: bytes.slice(proofAt) };
}

/**
 * The answer to a request. The same key and request give the same answer, always.
 *
 * @param request as parseVrfRequest gives it
 */
export function createVrfAnswer(request: VrfRequest, prover: VrfProver): VrfAnswer {
  const { seed, min, max, count } = request;
  const seedBytes = seedBytesOf(seed);
  if (seedBytes === undefined) throw new RangeError('the seed was not checked');
  const range = { min, max, count };
  const { proof, output } = prover.prove(encodeVrfInput(seedBytes, range));
  const values = reduceToRange(output, range);
  const { publicKey, suite } = prover;
  const token = encodeToken(suite.id, publicKey, range, proof);
  return { ...request, value: values[0]!, values, proof: token, publicKey: bytesToHex(publicKey) };
}

const refuse = (code: VrfReasonCode, message: string, statement: Partial<VrfStatement> = {}): VrfVerdict => ({
  valid: false,
  reason: { code, message },
  ...statement,
});

/** What the claim says of the token and the token does not. */
function statementFault(
  claim: VrfClaim,
  said: VrfRange & { readonly public_key: string },
): string | undefined {
  for (const name of ['min', 'max', 'count', 'public_key'] as const) {
    const claimed = claim[name];
    if (claimed !== undefined && claimed !== said[name])
      return `${name} is ${said[name]} in the proof, not ${claimed}`;
  }
  return undefined;
}

function valueFault({ value, values }: VrfClaim, drawn: readonly number[]): string | undefined {
  if (value === undefined && values === undefined) return 'there is no value to verify';
  if (value !== undefined && value !== drawn[0]) return `the first value is ${drawn[0]}, not ${value}`;
  if (values === undefined) return undefined;
  if (values.length !== drawn.length) return `there are ${drawn.length} values, not ${values.length}`;
  const at = drawn.findIndex((one, index) => one !== values[index]);
  return at < 0 ? undefined : `value ${at + 1} is ${drawn[at]}, not ${values[at]}`;
}

/**
 * Whether values follow from a seed by a proof. Needs no network and no node. `valid` says that the holder of
 * `publicKey` could not have answered otherwise; whose key it is, the caller must know (docs/randomness.md).
 * Never throws on what strangers send.
 */
export function verifyVrfToken(claim: VrfClaim, engine: VrfEngine = pureVrfEngine): VrfVerdict {
  const token = parseVrfToken(claim.proof, engine);
  if (typeof token === 'string') return refuse('VRF_PROOF_MALFORMED', token);
  const { ecvrf, publicKey, range, proof } = token;
  const statement = { suite: ecvrf.suite.name, publicKey: bytesToHex(publicKey), ...range };
  const seedBytes = seedBytesOf(claim.seed);
  const output = seedBytes && ecvrf.verify(publicKey, encodeVrfInput(seedBytes, range), proof);
  if (!output)
    return refuse('VRF_PROOF_REFUTED', 'the proof does not hold for this seed, range and key', statement);
  const values = reduceToRange(output, range);
  const fault =
    statementFault(claim, { ...range, public_key: statement.publicKey }) ?? valueFault(claim, values);
  if (fault !== undefined) return refuse('VRF_VALUE_MISMATCH', fault, statement);
  return { valid: true, values, ...statement };
}
