import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeRun, simulate } from './testing/simulate.ts';

/** Seeds that once showed something, and one that is run twice. */
const KEPT = [7];

test('three nodes through loss, delay, partitions, crashes and forgeries end with the same; a seed replays exactly', async (t) => {
  const replayed = { seed: 1, nodes: 3, steps: 50 };
  const first = await simulate(replayed);
  t.diagnostic(describeRun(replayed, first));
  assert.deepEqual(first.faults, []);
  const again = await simulate(replayed);
  assert.deepEqual([again.trace, again.digest], [first.trace, first.digest]);
  for (const seed of KEPT) {
    const options = { seed, nodes: 3, steps: 50 };
    const result = await simulate(options);
    t.diagnostic(describeRun(options, result));
    assert.deepEqual(result.faults, [], `seed ${seed}`);
  }
});
