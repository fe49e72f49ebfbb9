import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeRun, simulate } from './testing/simulate.ts';

const HOUR_MS = 3_600_000;
const DURATION_MS = 2 * HOUR_MS;
const SIZES = [3, 10, 30, 50] as const;
const STEPS = 300;

test('the table: what a node and a message cost', { timeout: DURATION_MS }, async (t) => {
  for (const nodes of SIZES) {
    const options = { seed: 100 + nodes, nodes, steps: STEPS };
    const result = await simulate(options);
    t.diagnostic(describeRun(options, result));
    assert.deepEqual(result.faults, [], `seed ${options.seed}`);
  }
});

test('a seed that once did not replay: files came in whatever order the disk had', {
  timeout: HOUR_MS,
}, async () => {
  const options = { seed: 1005, nodes: 3, steps: STEPS };
  const [first, again] = await Promise.all([simulate(options), simulate(options)]);
  assert.deepEqual(first.faults, []);
  assert.equal(first.trace, again.trace);
});

test('seeds that once had messages that nothing confirmed, for ever', { timeout: HOUR_MS }, async (t) => {
  for (const seed of [770009, 770029]) {
    const options = { seed, nodes: 4, steps: 150 };
    const result = await simulate(options);
    t.diagnostic(describeRun(options, result));
    assert.deepEqual(result.faults, [], `seed ${seed}`);
  }
});

test('a seed whose hidden node once did not give way to dates ahead of its clock', {
  timeout: HOUR_MS,
}, async () => {
  const { faults } = await simulate({ seed: 800437, nodes: 6, steps: 151, isHostile: true });
  assert.deepEqual(faults, []);
});

test('a seed whose nodes once had equal sums of unequal dates', { timeout: HOUR_MS }, async () => {
  const { faults } = await simulate({ seed: 700634, nodes: 5, steps: 60, isHostile: false });
  assert.deepEqual(faults, []);
});
