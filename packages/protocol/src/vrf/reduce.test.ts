import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sha512 } from '@noble/hashes/sha2.js';
import fc from 'fast-check';
import { reduceToRange } from './reduce.ts';

const SAFE = Number.MAX_SAFE_INTEGER;
const outputOf = (seed: number) => sha512(Uint8Array.of(seed >>> 24, seed >>> 16, seed >>> 8, seed));
const anyOutput = fc.uint8Array({ minLength: 32, maxLength: 64 });
const safe = fc.integer({ min: -SAFE, max: SAFE });
const anyRange = fc
  .record({
    a: safe,
    b: fc.oneof(safe, fc.integer({ min: -5, max: 5 })),
    count: fc.integer({ min: 1, max: 60 }),
  })
  .map(({ a, b, count }) => ({ min: Math.min(a, b), max: Math.max(a, b), count }));

/** How far counts are from even, in standard deviations of a chi-squared with that many classes (Wilson and Hilferty). */
function deviation(counts: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const expected = total / counts.length;
  const chi = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  const degrees = counts.length - 1;
  const spread = 2 / (9 * degrees);
  return (Math.cbrt(chi / degrees) - (1 - spread)) / Math.sqrt(spread);
}

/** Values of many outputs, the same in every run. */
function draw(min: number, max: number, draws: number): number[] {
  const values: number[] = [];
  for (let seed = 0; values.length < draws; seed++)
    values.push(...reduceToRange(outputOf(seed), { min, max, count: Math.min(1000, draws - values.length) }));
  return values;
}

describe('the reduction to a range', () => {
  test('gives as many whole numbers as asked for, all within the range, the same each time', () => {
    fc.assert(
      fc.property(anyOutput, anyRange, (output, range) => {
        const values = reduceToRange(output, range);
        assert.equal(values.length, range.count);
        for (const value of values)
          assert.ok(Number.isSafeInteger(value) && value >= range.min && value <= range.max);
        assert.deepEqual(reduceToRange(output, range), values);
      }),
    );
  });

  test('a longer list begins with the shorter one: the stream does not depend on the count', () => {
    fc.assert(
      fc.property(anyOutput, anyRange, (output, range) => {
        const longer = reduceToRange(output, { ...range, count: range.count + 10 });
        assert.deepEqual(longer.slice(0, range.count), reduceToRange(output, range));
      }),
    );
  });

  test('one possible value, and the widest range', () => {
    assert.deepEqual(reduceToRange(outputOf(1), { min: -3, max: -3, count: 3 }), [-3, -3, -3]);
    const widest = draw(-SAFE, SAFE, 4000);
    assert.ok(Math.min(...widest) < -SAFE * 0.99 && Math.max(...widest) > SAFE * 0.99);
    // Every bit of the value is as often set as not: within 5 standard deviations.
    for (let bit = 0n; bit < 53n; bit++) {
      const set = widest.filter((value) => (BigInt(value) >> bit) & 1n).length;
      assert.ok(Math.abs(set - 2000) < 5 * Math.sqrt(1000), `bit ${bit}: ${set} of 4000`);
    }
  });

  // Spans around powers of two and of ten, primes, and ones with which a short word taken modulo the span would lean.
  const SPANS = [
    2, 3, 5, 6, 7, 10, 11, 13, 17, 31, 33, 63, 65, 100, 127, 255, 256, 257, 641, 1000, 1023, 1025,
  ];
  for (const span of SPANS) {
    test(`chi-squared, ${span} values`, () => {
      const min = -Math.floor(span / 3);
      const counts = new Array<number>(span).fill(0);
      for (const value of draw(min, min + span - 1, 60 * span + 6000)) counts[value - min]!++;
      const z = deviation(counts);
      assert.ok(Math.abs(z) < 4, `${z} standard deviations`);
    });
  }

  test('chi-squared over wide spans, in 64 equal parts: where a bias of words cut too short would show', () => {
    const parts = 64;
    for (const span of [
      3 * 2 ** 51,
      5 * 2 ** 50 + 1,
      2 ** 53 - 1,
      2 ** 52 + 2 ** 51 + 3,
      3 * 2 ** 30,
      10 ** 15,
    ]) {
      const counts = new Array<number>(parts).fill(0);
      for (const value of draw(0, span - 1, 12_000)) counts[Math.floor((value / span) * parts)]!++;
      const z = deviation(counts);
      assert.ok(Math.abs(z) < 4, `${span}: ${z} standard deviations`);
    }
  });

  test('the test of evenness sees what it is for: words of 8 bits taken modulo 100', () => {
    const counts = new Array<number>(100).fill(0);
    for (const value of draw(0, 255, 12_000)) counts[value % 100]!++;
    assert.ok(deviation(counts) > 10);
  });

  test('neighbouring values of one answer do not depend on each other: chi-squared over pairs', () => {
    const values = draw(0, 15, 40_000);
    const counts = new Array<number>(256).fill(0);
    for (let i = 0; i + 1 < values.length; i += 2) counts[values[i]! * 16 + values[i + 1]!]!++;
    assert.ok(Math.abs(deviation(counts)) < 4);
  });
});
