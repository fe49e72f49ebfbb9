import {
  type Bound,
  boundBetween,
  compareBounds,
  END,
  type ShortKey,
  START,
  type SyncKey,
  shortKeyOf,
} from './key.ts';

/**
 * Range-based set reconciliation (A. Meyer, "Range-Based Set Reconciliation", 2023): two nodes compare fingerprints of
 * ranges of their ordered sets, split those that differ, and list what is in the smallest ones. Traffic follows the
 * difference, not the size. One asks, the other answers without remembering anything.
 */

/** Parts that a differing range is split into, and keys in a range that is listed. Measured: 8 and 8 cost the fewest bytes. */
const FANOUT = 8;
const LISTED_KEYS = 8;
/** Keys in a range that is listed because the asker has few there. */
const LISTED_KEYS_MAX = 256;
/** Ranges in one question. */
export const QUESTION_RANGES_MAX = 512;
/** Ranges and keys in one answer, beyond what the question's ranges have themselves. */
export const ANSWER_RANGES_MAX = 4_096;
export const ANSWER_KEYS_MAX = 8_192;

export const FINGERPRINT_BYTES = 16;

/** A set of keys in their order. Ranks count from 0; a range is [from, to). */
export interface OrderedKeys {
  readonly size: number;
  /** How many keys are before a bound. */
  rank(bound: Bound): number;
  keyAt(rank: number): SyncKey;
  /** Undefined: it is not there. */
  rankOf(key: ShortKey): number | undefined;
  /** The same for the same keys. */
  fingerprint(from: number, to: number): Uint8Array;
}

export type Range = { readonly lower: Bound; readonly upper: Bound } & (
  | { readonly kind: 'fingerprint'; readonly fingerprint: Uint8Array }
  /** Asks for the keys. */
  | { readonly kind: 'list' }
  | { readonly kind: 'keys'; readonly keys: readonly ShortKey[] }
);

const isEqual = (a: Uint8Array, b: Uint8Array) => a.every((byte, at) => byte === b[at]);

const fingerprintOf = (set: OrderedKeys, lower: Bound, upper: Bound): Range => ({
  kind: 'fingerprint',
  lower,
  upper,
  fingerprint: set.fingerprint(set.rank(lower), set.rank(upper)),
});

/** The range in parts of equal count. */
function split(set: OrderedKeys, { lower, upper }: Pick<Range, 'lower' | 'upper'>): Range[] {
  const [from, to] = [set.rank(lower), set.rank(upper)];
  const count = to - from;
  const parts = Math.max(1, Math.min(FANOUT, Math.ceil(count / (LISTED_KEYS / 2))));
  const ranges: Range[] = [];
  let [start, bound] = [from, lower];
  for (let part = 1; part <= parts; part++) {
    const end = from + Math.floor((count * part) / parts);
    const next = part === parts ? upper : boundBetween(set.keyAt(end - 1), set.keyAt(end));
    ranges.push({ kind: 'fingerprint', lower: bound, upper: next, fingerprint: set.fingerprint(start, end) });
    [start, bound] = [end, next];
  }
  return ranges;
}

function keysOf(set: OrderedKeys, { lower, upper }: Pick<Range, 'lower' | 'upper'>): Range {
  const keys: ShortKey[] = [];
  for (let rank = set.rank(lower), to = set.rank(upper); rank < to; rank++)
    keys.push(shortKeyOf(set.keyAt(rank)));
  return { kind: 'keys', lower, upper, keys };
}

/** What a node answers to another one's question: parts or keys of each range that differs. */
export function answerRanges(set: OrderedKeys, question: readonly Range[]): Range[] {
  const answer: Range[] = [];
  let keys = 0;
  for (const range of question) {
    const [from, to] = [set.rank(range.lower), set.rank(range.upper)];
    const count = to - from;
    if (range.kind === 'fingerprint' && isEqual(range.fingerprint, set.fingerprint(from, to))) continue;
    const listed = range.kind === 'list' ? LISTED_KEYS_MAX : LISTED_KEYS;
    if (count <= listed && keys + count <= ANSWER_KEYS_MAX) {
      keys += count;
      answer.push(keysOf(set, range));
    } else if (answer.length < ANSWER_RANGES_MAX) answer.push(...split(set, range));
    // No room: the asker sees that it differs, and asks again.
    else answer.push(fingerprintOf(set, range.lower, range.upper));
  }
  return answer;
}

/** How the asker begins. @param lower what is before it is not asked about */
export const openQuestion = (set: OrderedKeys, lower = START): Range[] => split(set, { lower, upper: END });

export interface Continued {
  /** What to ask next. Empty: everything is known. */
  readonly open: readonly Range[];
  /** Keys that the other has and this set has not. */
  readonly lacks: readonly ShortKey[];
  /** Keys that this set has and the other has not: the first of them. */
  readonly has: readonly ShortKey[];
  /** How many those are in all. */
  readonly hasCount: number;
}

/**
 * What follows from an answer.
 * @param hasMax how many keys to list that only this set has: of a set that is empty, those are all
 */
export function continueRanges(
  set: OrderedKeys,
  answer: readonly Range[],
  hasMax = Number.POSITIVE_INFINITY,
): Continued {
  const open: Range[] = [];
  const lacks: ShortKey[] = [];
  const has: ShortKey[] = [];
  let hasCount = 0;
  for (const range of answer) {
    if (range.kind === 'list') continue;
    const [from, to] = [set.rank(range.lower), set.rank(range.upper)];
    if (range.kind === 'keys') {
      const common = new Set<number>();
      for (const key of range.keys) {
        const rank = set.rankOf(key);
        if (rank !== undefined && rank >= from && rank < to) common.add(rank);
        else lacks.push(key);
      }
      hasCount += to - from - common.size;
      for (let rank = from; rank < to && has.length < hasMax; rank++)
        if (!common.has(rank)) has.push(shortKeyOf(set.keyAt(rank)));
    } else if (!isEqual(range.fingerprint, set.fingerprint(from, to))) {
      if (to - from <= LISTED_KEYS) open.push({ kind: 'list', lower: range.lower, upper: range.upper });
      else open.push(...split(set, range));
    }
  }
  return { open, lacks, has, hasCount };
}

/** Whether every range of an answer lies within one of the question's, in order: anything else is no answer to it. */
export function answersQuestion(question: readonly Range[], answer: readonly Range[]): boolean {
  let at = 0;
  let last: Bound = START;
  for (const { lower, upper } of answer) {
    if (compareBounds(lower, last) < 0 || compareBounds(lower, upper) > 0) return false;
    while (at < question.length && compareBounds(question[at]!.upper, lower) <= 0) at++;
    const within = question[at];
    if (!within || compareBounds(lower, within.lower) < 0 || compareBounds(upper, within.upper) > 0)
      return false;
    last = upper;
  }
  return true;
}
