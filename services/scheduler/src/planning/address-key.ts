import { randomInt } from 'node:crypto';

/** Digits of an instance's id that are in its address (docs/decisions.md 15). */
export const ID_DIGITS_IN_ADDRESS = 11;
/** The first of them, and the others: 28 bits are the most that the shifts of a number hold. */
const HEAD_DIGITS = 4;
/** Of '0', and of 'a' less ten. */
const [DIGITS_FROM, LETTERS_FROM] = [48, 87];

/**
 * An id is a hash, and whoever tries many has as many as they like that begin or end alike: which ids share a key is this
 * process's secret (multiply-shift, Dietzfelbinger et al. 1997).
 */
const randomOdd = () => 2 * randomInt(2 ** 31) + 1;
const [HEAD_FACTOR, TAIL_FACTOR] = [randomOdd(), randomOdd()];

/** The number that digits of an id are. */
function digitsOf(instanceId: string, from: number, to: number): number {
  let digits = 0;
  for (let index = from; index < to; index++) {
    const code = instanceId.charCodeAt(index);
    digits = (digits << 4) | (code - (code < LETTERS_FROM ? DIGITS_FROM : LETTERS_FROM));
  }
  return digits;
}

/**
 * The key under which an instance is found: ids that have the same address on a node have the same, and of others hardly two in
 * a hundred million. 28 bits are a small integer, which a map takes without a box.
 */
export function addressKeyOf(instanceId: string): number {
  const head = Math.imul(digitsOf(instanceId, 0, HEAD_DIGITS), HEAD_FACTOR);
  const tail = Math.imul(digitsOf(instanceId, HEAD_DIGITS, ID_DIGITS_IN_ADDRESS), TAIL_FACTOR);
  const mixed = head + tail;
  // The high bits are mixed best, and rows are told apart by low ones.
  return (mixed >>> 4) ^ (mixed >>> 18);
}
