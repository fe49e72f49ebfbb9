import assert from 'node:assert/strict';
import { checkForTests } from '../../services/core/src/intake/verify/batch/testing/built.ts';
import {
  compareMutant,
  signSome,
  startComparison,
} from '../../services/core/src/intake/verify/batch/testing/mutants.ts';
import { SeededDice } from '../../services/core/src/sim/testing/dice.ts';
import type { SoakOptions } from './options.ts';

const AT_ONCE = 10_000;

/** Mutated signatures, each in a batch and by recovery: the verdicts must be the same. */
export async function soakBatches({ seconds, seed }: SoakOptions): Promise<void> {
  const check = await checkForTests();
  const all = signSome();
  const dice = new SeededDice(seed);
  const found = startComparison();
  let count = 0;
  for (const end = performance.now() + seconds * 1000; performance.now() < end; count += AT_ONCE) {
    for (let at = 0; at < AT_ONCE; at++) compareMutant(check, all, dice, found);
    assert.deepEqual(found.differences, []);
  }
  const { valid, invalid, malformed } = found;
  console.log(`${count} mutants, no difference (${valid} valid, ${invalid} not, ${malformed} malformed)`);
}
