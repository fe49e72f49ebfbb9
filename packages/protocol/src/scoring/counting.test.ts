import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  hourSecondsOf,
  measuredHoursOf,
  measuredMsOf,
  outweighs,
  SCORES_AGE_MAX_MS,
  type ToldScore,
} from './counting.ts';

const NOW_MS = Date.parse('2026-06-01T00:00:00Z');
const LAST_MS = NOW_MS - SCORES_AGE_MAX_MS;
const told = (score: number, hours: number, measuredMs = NOW_MS, hourSeconds = 3_600): ToldScore => ({
  ...{ score, hours, hourSeconds, measuredMs },
});
const pick = (all: readonly ToldScore[]) =>
  all.reduce((one, other) => (outweighs(other, one, NOW_MS) ? other : one));

test('of several scores of a node the one from more hours counts, of equal ones the lower, and an outdated one where there is no other', () => {
  const long = told(0.9, 2_000, NOW_MS - 3_600_000);
  // Lower and higher, and published later.
  for (const began of [told(0.1, 3), told(1, 3)]) assert.equal(pick([began, long]), long);
  assert.equal(pick([told(0.9, 5), told(0.8, 5)]).score, 0.8);
  const old = told(1, 9_999, LAST_MS - 1);
  assert.equal(pick([old, told(0.1, 1, LAST_MS)]).score, 0.1);
  // Of those that are all outdated, what was measured last.
  assert.equal(pick([told(1, 9_999, LAST_MS - 2), told(0.5, 1, LAST_MS - 1)]).score, 0.5);
});

test('hours of different length are not compared by their number', () => {
  const [long, short] = [told(0.9, 10), told(0.1, 500, NOW_MS, 60)];
  assert.equal(pick([short, long]), long);
  assert.equal(pick([long, short]), long);
  // As long in all: the lower one.
  assert.equal(pick([long, told(0.5, 600, NOW_MS, 60)]).score, 0.5);
  assert.equal(hourSecondsOf({ hour_seconds: 60 }), 60);
  for (const odd of [
    undefined,
    null,
    'x',
    {},
    { hour_seconds: 0 },
    { hour_seconds: 1.5 },
    { hour_seconds: '60' },
  ])
    assert.equal(hourSecondsOf(odd), 3_600);
});

test('which score counts does not depend on the order in which they are read', () => {
  const any = fc.record({
    score: fc.constantFrom(0, 0.5, 1),
    hours: fc.constantFrom(0, 1, 9),
    hourSeconds: fc.constantFrom(400, 3_600),
    measuredMs: fc.constantFrom(LAST_MS - 2, LAST_MS - 1, LAST_MS, NOW_MS),
  });
  // Of those that count, the time makes no difference either.
  const wordOf = ({ score, hours, hourSeconds, measuredMs }: ToldScore) => [
    score,
    hours * hourSeconds,
    measuredMs < LAST_MS && measuredMs,
  ];
  const lists = fc
    .array(any, { minLength: 1, maxLength: 6 })
    .chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })));
  fc.assert(
    fc.property(lists, ([all, shuffled]) => assert.deepEqual(wordOf(pick(all)), wordOf(pick(shuffled)))),
  );
});

test('hours and the time of the newest measurement are read with care', () => {
  assert.deepEqual(
    [5, 0, 1e300, -1, 1.5, '7', null, undefined].map(measuredHoursOf),
    [5, 0, 1, 1, 1, 1, 1, 1],
  );
  assert.equal(measuredMsOf('2026-06-01T00:00:00.000Z', 1), NOW_MS);
  for (const absent of [null, undefined, 'soon', 7]) assert.equal(measuredMsOf(absent, 1), 1_000);
});
