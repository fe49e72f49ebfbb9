import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { ProofBudget } from './proof.ts';

const STRANGERS = 25;
const FULL_RATE = 1_200;
const SCHEDULER_PER_MINUTE = 120;

test('strangers who ask for as many proofs as they may leave those of a scheduler, whose node would get nothing', () => {
  const budget = new ProofBudget();
  /** @returns how many of the proofs it gets within one moment */
  const ask = (key: string, times: number) => {
    let given = 0;
    for (let asked = 0; asked < times; asked++)
      try {
        budget.take(key, 0);
        given++;
      } catch (error) {
        // Another code would count as silence.
        assert.ok(error instanceof AppError && error.code === 'RATE_LIMITED');
        assert.match(error.message, /get(s)? \d+ proofs a minute.*try again in 60 s$/);
      }
    return given;
  };
  assert.equal(ask('a client alone', FULL_RATE + 1), FULL_RATE);
  const given = Array.from({ length: STRANGERS }, (_, n) => ask(`stranger ${n}`, FULL_RATE));
  assert.equal(given[0], FULL_RATE);
  assert.equal(given.at(-1), SCHEDULER_PER_MINUTE);
  assert.equal(ask('scheduler', SCHEDULER_PER_MINUTE), SCHEDULER_PER_MINUTE);
});
