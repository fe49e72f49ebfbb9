import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { ProofBudget } from './proof.ts';

const STRANGERS = 25;
const FULL_RATE = 1_200;
const SCHEDULER_PER_MINUTE = 120;
/** As many as use up everything, each with as little as a scheduler. */
const LIGHT_STRANGERS = 250;

/** @returns who asks for proofs, and is told how many of them it gets within one moment */
function createAsker() {
  const budget = new ProofBudget();
  return (key: string, times: number, isExempt = false) => {
    let given = 0;
    for (let asked = 0; asked < times; asked++)
      try {
        budget.take({ key, isExempt }, 0);
        given++;
      } catch (error) {
        // Another code would count as silence.
        assert.ok(error instanceof AppError && error.code === 'RATE_LIMITED');
        assert.match(error.message, /get(s)? \d+ proofs a minute.*try again in 60 s$/);
      }
    return given;
  };
}

test('strangers who ask for as many proofs as they may leave those of a scheduler, whose node would get nothing', () => {
  const ask = createAsker();
  assert.equal(ask('a client alone', FULL_RATE + 1), FULL_RATE);
  const given = Array.from({ length: STRANGERS }, (_, n) => ask(`stranger ${n}`, FULL_RATE));
  assert.equal(given[0], FULL_RATE);
  assert.equal(given.at(-1), SCHEDULER_PER_MINUTE);
  assert.equal(ask('scheduler', SCHEDULER_PER_MINUTE), SCHEDULER_PER_MINUTE);
});

test("any number of strangers who ask for few proofs leave those of the network's own services", () => {
  const ask = createAsker();
  for (let n = 0; n < LIGHT_STRANGERS; n++) ask(`stranger ${n}`, SCHEDULER_PER_MINUTE);
  assert.equal(ask('one more', SCHEDULER_PER_MINUTE), 0);
  assert.equal(ask('scheduler', SCHEDULER_PER_MINUTE, true), SCHEDULER_PER_MINUTE);
  assert.equal(ask('monitor', FULL_RATE + 1, true), FULL_RATE);
});

test("the network's own services share with the others what they need beyond their own", () => {
  const ask = createAsker();
  const given = Array.from({ length: 10 }, (_, n) => ask(`service ${n}`, FULL_RATE, true));
  assert.deepEqual(given, Array(10).fill(FULL_RATE));
});
