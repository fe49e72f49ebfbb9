import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeRun, simulate } from './testing/simulate.ts';

/** Seeds that once showed something, and one with a node that nobody can reach and reorganisations. */
const KEPT = [
  { seed: 7, nodes: 3, steps: 50 },
  { seed: 11, nodes: 4, steps: 60 },
];

test('a few nodes through loss, partitions, crashes, forgeries and reorganisations end with the same; a seed replays exactly', async (t) => {
  const replayed = { seed: 1, nodes: 3, steps: 30 };
  const first = await simulate(replayed);
  t.diagnostic(describeRun(replayed, first));
  assert.deepEqual(first.faults, []);
  const again = await simulate(replayed);
  assert.deepEqual([again.trace, again.digest], [first.trace, first.digest]);
  for (const options of KEPT) {
    const result = await simulate(options);
    t.diagnostic(describeRun(options, result));
    assert.deepEqual(result.faults, [], `seed ${options.seed}`);
  }
});
