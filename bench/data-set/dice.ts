/** A number in [0, 1) that follows from a seed, an index and what it is for. */
export type Dice = (index: number, purpose: number) => number;

/** The finalizer of MurmurHash3 over both numbers: good enough for data, and fast. */
function mix(seed: number, index: number, purpose: number): number {
  let h = seed ^ Math.imul(index, 0x9e37_79b1) ^ Math.imul(purpose + 1, 0x85eb_ca6b);
  for (let round = 0; round < 2; round++) {
    h ^= h >>> 16;
    h = Math.imul(h, 0x85eb_ca6b);
    h ^= h >>> 13;
    h = Math.imul(h, 0xc2b2_ae35);
    h ^= h >>> 16;
    h = (h + Math.imul(purpose, 0x27d4_eb2f) + seed) | 0;
  }
  return h >>> 0;
}

export const createDice =
  (seed: number): Dice =>
  (index, purpose) =>
    mix(seed, index, purpose) / 2 ** 32;

/** Hexadecimal digits, eight for each word; different for each index, since `mix` of one purpose is a bijection. */
export function hexOf(dice: Dice, index: number, purpose: number, words: number): string {
  let text = '';
  for (let word = 0; word < words; word++)
    text += (dice(index, purpose + word * 16) * 2 ** 32).toString(16).padStart(8, '0');
  return text;
}
