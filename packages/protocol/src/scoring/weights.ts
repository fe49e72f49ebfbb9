import { UNIT } from './quality.ts';
import { floorRoot } from './roots.ts';

/** How much the hours of a node count, newest first: w(r) = 0.8 g(0.99, r) + 0.2 g(0.999, r), g(p, r) = (1 - p) p^(r - 1). */
const GUARD = 10n ** 40n;
/** One, for a weight. */
export const WEIGHT_UNIT = 10n ** 18n;
const DROPPED = GUARD / WEIGHT_UNIT;

const weights: bigint[] = [];
let fast = GUARD / 100n;
let slow = GUARD / 1000n;

/**
 * The weight of the r-th newest hour in WEIGHT_UNIT, by a recursion over whole numbers that anybody can repeat: both
 * series shrink by their ratio, rounded down, with 22 digits more than are kept.
 * @param rank from 1
 */
export function weightOf(rank: number): bigint {
  while (weights.length < rank) {
    weights.push((4n * fast + slow) / (5n * DROPPED));
    fast = (fast * 99n) / 100n;
    slow = (slow * 999n) / 1000n;
  }
  return weights[rank - 1]!;
}

/** UNIT and WEIGHT_UNIT together are 10^30; to the power 3/4 and back to UNIT, 10^42 is to be taken away. */
const CUBE_EXCESS = 10n ** 42n;

/**
 * The total score in UNIT: the weighted sum to the power 3/4.
 * @param sum of weight times quality, in WEIGHT_UNIT times UNIT
 */
export function totalOf(sum: bigint): number {
  return Math.min(Number(floorRoot(sum ** 3n / CUBE_EXCESS, 4)), UNIT);
}

/** More hours than a perfect node's score still tells apart: the usual period has no more. */
const TOLD_HOURS_MAX = 730 * 24;
/** What so many perfect hours come to, in WEIGHT_UNIT times UNIT. */
const perfectSums: bigint[] = [0n];

/**
 * The fewest hours that give a total score: perfect ones, the newest of all, whose weights are the greatest. Whoever has the score had
 * something to show in as many hours at least, however many more were measured.
 * @param score 0..1, as published
 */
export function leastHoursFor(score: number): number {
  const cube = BigInt(Math.round(score * UNIT)) ** 4n * CUBE_EXCESS;
  const root = floorRoot(cube, 3);
  const sum = root ** 3n < cube ? root + 1n : root;
  while (perfectSums.at(-1)! < sum && perfectSums.length <= TOLD_HOURS_MAX)
    perfectSums.push(perfectSums.at(-1)! + weightOf(perfectSums.length) * BigInt(UNIT));
  let [low, high] = [0, perfectSums.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (perfectSums[middle]! < sum) low = middle + 1;
    else high = middle;
  }
  return low;
}
