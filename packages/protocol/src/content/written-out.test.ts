import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '../limits.ts';
import { whyTooLongWrittenOut } from './written-out.ts';

const isRefused = (content: unknown) => whyTooLongWrittenOut(content) !== undefined;
const times = (count: number, value: unknown) => Array.from({ length: count }, () => value);

test('numbers as science and money have them may be as many as a content holds', () => {
  const ordinary = [1e21, -1e21, 1e23, 1.5e-7, -1e-7, 6.62607015e-34, 1.2345678901234567e-12, 0, -0, 0.1];
  for (const value of [...ordinary, 1.2345678901234567e19, Number.MAX_SAFE_INTEGER, 1e20, 1e-6])
    assert.ok(!isRefused({ type: 'note', content: times(100_000, value) }), String(value));
});

test('numbers of hundreds of digits may have so many digits together as the limit says, wherever they are', () => {
  /** How it is written without its exponent, and with it. */
  const extremes = [
    [9e307, `9${'0'.repeat(307)}`, '9e+307'],
    [-9e307, `-9${'0'.repeat(307)}`, '-9e+307'],
    [1.25e300, `125${'0'.repeat(298)}`, '1.25e+300'],
    [5e-324, `0.${'0'.repeat(323)}5`, '5e-324'],
    [-1.25e-300, `-0.${'0'.repeat(299)}125`, '-1.25e-300'],
  ] as const;
  for (const [value, writtenOut, written] of extremes) {
    assert.equal(JSON.stringify(value), written);
    const most = Math.floor(
      LIMITS.grownNumberChars / (writtenOut.length - LIMITS.numberGrowth * (written.length + 1)),
    );
    for (const wrap of [(list: unknown) => list, (list: unknown) => ({ a: [{ b: list }], c: 'x' })]) {
      assert.ok(!isRefused(wrap(times(most, value))), written);
      assert.ok(isRefused(wrap(times(most + 1, value))), written);
    }
    assert.ok(isRefused(Object.fromEntries(times(most + 1, value).map((one, at) => [`k${at}`, one]))));
  }
});

test('it says what is too long, and what may be written instead', () => {
  assert.match(
    whyTooLongWrittenOut(times(1_000, 9e307))!,
    /280000 characters more than 4 times their length, and may have 32768: write them as text/,
  );
  assert.ok(!isRefused(times(100_000, '9e307')));
});
