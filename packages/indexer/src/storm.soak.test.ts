import { test } from 'node:test';
import { runStorm } from './testing/storm.ts';

const SEEDS = 40;
/** Seeds that `npm test` does not play. */
const FIRST_SEED = 2;

for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)
  test(`the tables equal a read of the final chain after a storm (seed ${seed})`, () => runStorm(seed));
