import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { writeInTurn } from './turn.ts';

/** More than it takes to begin all of them. */
const TURNS = 20;

test('two batches are being written at a time, however long the first of them takes', async () => {
  const batches = ['first', 'second', 'third'].map((name) => [name]);
  const begun: string[] = [];
  const first = Promise.withResolvers<void>();
  const writing = writeInTurn(
    () => batches.shift() ?? [],
    async ([name], before, onCommitting) => {
      begun.push(name!);
      onCommitting();
      if (name === 'first') await first.promise;
      await before;
    },
  );
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  assert.deepEqual(begun, ['first', 'second']);
  first.resolve();
  assert.equal(await writing, 1);
  assert.deepEqual(begun, ['first', 'second', 'third']);
});
