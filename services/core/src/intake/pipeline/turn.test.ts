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
    () => new Promise(() => {}),
    async ([name], { before, onCommitting }) => {
      begun.push(name!);
      onCommitting?.(undefined);
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

test('a batch that comes while the one before is being committed has its turn behind it, with what that leaves', async () => {
  const batches = [['first']];
  const begun: [name: string, behind: string | undefined][] = [];
  const first = Promise.withResolvers<void>();
  const many = Promise.withResolvers<void>();
  const writing = writeInTurn<string, string>(
    () => batches.shift() ?? [],
    () => many.promise,
    async ([name], { before, behind, onCommitting }) => {
      begun.push([name!, behind]);
      onCommitting?.(`left by ${name}`);
      if (name === 'first') await first.promise;
      await before;
    },
  );
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  assert.deepEqual(begun, [['first', undefined]]);
  batches.push(['second']);
  many.resolve();
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  assert.deepEqual(begun.at(-1), ['second', 'left by first']);
  first.resolve();
  assert.equal(await writing, 1);
});

test('where many wait, and none of them is to be taken yet, the batch is written and the turn is over', async () => {
  let taken = 0;
  const written = writeInTurn(
    () => (taken++ === 0 ? ['first'] : []),
    () => Promise.resolve(),
    async (batch, { onCommitting }) => {
      assert.equal(batch.length, 1);
      onCommitting?.(undefined);
    },
  );
  assert.equal(await written, 1);
});
