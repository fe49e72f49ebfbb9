import { createSigner } from '@skerry/client';
import {
  bytesToHex,
  evmAddressOf,
  hexToBytes,
  type PersonalClaim,
  readPersonalClaim,
  recoverPersonalKey,
} from '@skerry/protocol';
import type { SeededDice } from '../../../../sim/testing/dice.ts';
import { type BatchCheck, VERDICTS } from '../addon.ts';
import { type KeyedClaim, packClaims } from '../claims.ts';

/** Order of the curve's group. */
export const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const KEYS = 12;
const TEXTS = 4;

export const numberOf = (bytes: Uint8Array) => BigInt(`0x${bytesToHex(bytes)}`);
export const bytesOf = (value: bigint) => hexToBytes(value.toString(16).padStart(64, '0'))!;

/** A valid signature: 65 bytes, r, s and v. */
interface Signed {
  readonly text: string;
  readonly signature: Uint8Array;
  readonly sender: string;
  readonly key: Uint8Array;
}

export const claimOf = ({ text, signature }: Pick<Signed, 'text' | 'signature'>) =>
  readPersonalClaim(text, `0x${bytesToHex(signature)}`);

/** Valid signatures of a few keys over a few texts each. */
export function signSome(): Signed[] {
  return Array.from({ length: KEYS * TEXTS }, (_, index) => {
    const signer = createSigner(`0x${(1 + (index % KEYS)).toString(16).padStart(64, 'c')}`);
    const text = `{"text":${index}}`;
    const signature = hexToBytes(signer.sign(text))!;
    const key = recoverPersonalKey(claimOf({ text, signature })!)!;
    return { text, signature, sender: signer.address, key };
  });
}

/** Numbers at which something begins or ends: zero, the order, the field, and what lies beside them. */
const FIELD = 2n ** 256n - 2n ** 32n - 977n;
const EDGES = [0n, 1n, 2n, ORDER >> 1n, ORDER - 1n, ORDER, ORDER + 1n, FIELD - 1n, FIELD, 2n ** 256n - 1n];

type Mutation = (signature: Uint8Array, dice: SeededDice, other: Signed) => void;

const flip = (bytes: Uint8Array, from: number, length: number, dice: SeededDice) => {
  bytes[from + dice.below(length)]! ^= 1 << dice.below(8);
};
const negate = (bytes: Uint8Array, from: number) => {
  const value = numberOf(bytes.subarray(from, from + 32));
  bytes.set(bytesOf(value === 0n ? 0n : (2n * ORDER - value) % ORDER), from);
};
const turn = (bytes: Uint8Array) => {
  bytes[64] = bytes[64] === 27 ? 28 : 27;
};

/** By what of a signature they change. Some leave it valid: the second spelling of s, another name of v. */
const MUTATIONS: Readonly<Record<string, Mutation>> = {
  r: (bytes, dice) => flip(bytes, 0, 32, dice),
  s: (bytes, dice) => flip(bytes, 32, 32, dice),
  v: (bytes, dice) => {
    bytes[64] = dice.below(32);
  },
  'the parity': turn,
  'r to n - r': (bytes) => negate(bytes, 0),
  's to n - s': (bytes) => negate(bytes, 32),
  'the second spelling': (bytes) => {
    negate(bytes, 32);
    turn(bytes);
  },
  'r to an edge': (bytes, dice) => bytes.set(bytesOf(EDGES[dice.below(EDGES.length)]!), 0),
  's to an edge': (bytes, dice) => bytes.set(bytesOf(EDGES[dice.below(EDGES.length)]!), 32),
  "another's r": (bytes, _, { signature }) => bytes.set(signature.subarray(0, 32), 0),
  "another's s": (bytes, _, { signature }) => bytes.set(signature.subarray(32, 64), 32),
  'r and s the other way round': (bytes) =>
    bytes.set([...bytes.subarray(32, 64), ...bytes.subarray(0, 32)], 0),
  nothing: () => {},
};
const NAMES = [...Object.keys(MUTATIONS), 'the digest', 'the text', 'the key'];

export interface Mutant {
  readonly name: string;
  /** Undefined: it is refused before anything is computed. */
  readonly claim: PersonalClaim | undefined;
  readonly signature: Uint8Array;
  readonly key: Uint8Array;
  readonly sender: string;
}

export function mutate(all: readonly Signed[], dice: SeededDice): Mutant {
  const one = all[dice.below(all.length)]!;
  const other = all[dice.below(all.length)]!;
  const name = NAMES[dice.below(NAMES.length)]!;
  const signature = Uint8Array.from(one.signature);
  MUTATIONS[name]?.(signature, dice, other);
  const claim = claimOf({ text: name === 'the text' ? other.text : one.text, signature });
  if (claim && name === 'the digest') flip(claim.digest, 0, 32, dice);
  const { key, sender } = name === 'the key' ? other : one;
  return { name, claim, signature, key, sender };
}

const isSignedBy = (claim: PersonalClaim, sender: string) => {
  const key = recoverPersonalKey(claim);
  return key !== undefined && evmAddressOf(key) === sender;
};

/** What is refused before is refused by the addon, too: its own ranges are asked. */
const rawClaimOf = ({ signature }: Mutant): PersonalClaim => ({
  digest: new Uint8Array(32).fill(1),
  rs: signature.subarray(0, 64),
  recoveryId: (signature[64]! & 1) as 0 | 1,
});

/** Which claims beside it are in the batch: none mostly, for the verdict is on all of them. */
const companionsOf = (all: readonly Signed[], dice: SeededDice): KeyedClaim[] =>
  Array.from({ length: dice.chance(0.1) ? dice.below(5) : 0 }, () => {
    const one = all[dice.below(all.length)]!;
    return { claim: claimOf(one)!, key: one.key };
  });

export interface Comparison {
  valid: number;
  invalid: number;
  /** Of those that recovery never sees. */
  malformed: number;
  readonly differences: string[];
}

const isMalformed = ({ signature }: Mutant) => {
  const [r, s] = [numberOf(signature.subarray(0, 32)), numberOf(signature.subarray(32, 64))];
  return [r, s].some((value) => value === 0n || value >= ORDER);
};

/** Judges one mutant by recovery and in a batch, and notes where they differ. */
export function compareMutant(
  check: BatchCheck,
  all: readonly Signed[],
  dice: SeededDice,
  to: Comparison,
): void {
  const mutant = mutate(all, dice);
  const { claim, key, sender, name, signature } = mutant;
  // Only v is wrong: there is nothing to ask the addon.
  if (!claim && !isMalformed(mutant)) return;
  const expected = claim !== undefined && isSignedBy(claim, sender);
  const batch = [...companionsOf(all, dice), { claim: claim ?? rawClaimOf(mutant), key }];
  const { claims, keys } = packClaims(batch);
  const got = check(claims, keys);
  to[claim ? (expected ? 'valid' : 'invalid') : 'malformed']++;
  if (got === (expected ? VERDICTS.holds : VERDICTS.fails)) return;
  to.differences.push(`${name}: ${got} in a batch of ${batch.length}: ${bytesToHex(signature)}`);
}

export const startComparison = (): Comparison => ({ valid: 0, invalid: 0, malformed: 0, differences: [] });
