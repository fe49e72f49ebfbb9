import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimClock } from './testing/clock.ts';
import { SeededDice } from './testing/dice.ts';
import { describeRun, type SimOptions, simulate } from './testing/simulate.ts';

/** An archive that nobody has is put off in it, by a time with fractions. */
const LOST_ARCHIVE: SimOptions = { seed: 4, nodes: 3, steps: 40 };
/** Clocks are set forward and back in it. */
const TURNED: SimOptions = { seed: 6, nodes: 3, steps: 40 };

test('F2: what production draws is drawn with its fractions, and nothing turns for ever', async (t) => {
  const result = await simulate(LOST_ARCHIVE);
  t.diagnostic(describeRun(LOST_ARCHIVE, result));
  assert.deepEqual(result.faults, []);
});

test('F3: nodes whose clocks are hours off, drift and are set anew end with the same and say so', async (t) => {
  const result = await simulate(TURNED);
  t.diagnostic(describeRun(TURNED, result));
  assert.deepEqual(result.faults, []);
  const clock = new SimClock(new SeededDice(1), 0, true);
  assert.ok(Math.abs(clock.read(0)) > 60_000);
});
