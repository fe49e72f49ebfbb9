import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeLying, findLyingFaults } from './testing/lies/compare.ts';

/** The last of the nodes joins when texts are erased, and asks the liar before all others. */
const SHAPE = { seed: 35, nodes: 3, steps: 36 };

test('nodes with a peer that lies end with what they have without it', async (t) => {
  const { faults, lying } = await findLyingFaults(SHAPE);
  t.diagnostic(describeLying(SHAPE, lying));
  assert.deepEqual(faults, []);
});
