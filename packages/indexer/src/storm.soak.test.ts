import { test } from 'node:test';
import { reorganise, runStorm } from './testing/storm.ts';

test('reorganisations of depths from 1 to 64', () =>
  reorganise([1, 2, 3, 5, 8, 13, 21, 32, 33, 34, 48, 63, 64]));

const SEEDS = 40;
/** Seeds that `npm test` does not play. */
const FIRST_SEED = 2;

for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)
  test(`the tables equal a read of the final chain after a storm (seed ${seed})`, () => runStorm(seed));
