import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulateHostile } from './testing/hostile.ts';

/** The last of four nodes cannot be reached by anybody. */
const RUNS = [
  { seed: 21, nodes: 3, steps: 60 },
  { seed: 22, nodes: 4, steps: 60 },
];

for (const options of RUNS)
  test(`H1, H2: through storms, ${options.nodes} nodes agree on what a delegate may who dates as it likes, and after its revocation it does nothing`, async (t) => {
    const { strikes, faults, rounds } = await simulateHostile(options);
    t.diagnostic(`seed ${options.seed}: ${strikes} strikes, agreed after ${rounds} rounds`);
    assert.deepEqual(faults, []);
  });
