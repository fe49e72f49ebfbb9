import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { chooseToGiveWay } from './kept-shares.ts';

const LIMIT_MIB = 768;
const keptBy = (owner: string, memoryMib: number) => ({ owner, memoryMib });

/** What ends for one, as text; undefined where there is no room for it. */
function goingFor(asked: string, memoryMib: number, ...kept: ReturnType<typeof keptBy>[]) {
  try {
    const going = chooseToGiveWay(kept, keptBy(asked, memoryMib), LIMIT_MIB);
    return going.map((one) => `${one.owner}${one.memoryMib}`);
  } catch (error) {
    if (error instanceof AppError && error.code === 'NO_RUNNER') return undefined;
    throw error;
  }
}

test('alone, an owner has all that kept programs may have, and no more', () => {
  assert.deepEqual(goingFor('a', 768), []);
  assert.equal(goingFor('a', 769), undefined);
  assert.deepEqual(goingFor('a', 268, keptBy('a', 500)), []);
  assert.equal(goingFor('a', 269, keptBy('a', 500)), undefined);
});

test('who has more than half gives way to whoever has not, with the largest first', () => {
  assert.deepEqual(goingFor('b', 152, keptBy('a', 700)), ['a700']);
  assert.deepEqual(goingFor('b', 384, keptBy('a', 100), keptBy('a', 400), keptBy('a', 200)), ['a400']);
  assert.equal(goingFor('b', 385, keptBy('a', 700)), undefined, 'it would have more than half itself');
  assert.equal(goingFor('b', 100, keptBy('a', 500), keptBy('b', 200), keptBy('b', 100)), undefined);
});

test('who has half or less gives way to nobody', () => {
  assert.equal(goingFor('c', 25, keptBy('a', 384), keptBy('b', 384)), undefined);
  assert.deepEqual(goingFor('c', 60, keptBy('a', 384), keptBy('b', 300)), []);
  assert.deepEqual(goingFor('c', 200, keptBy('a', 385), keptBy('b', 383)), ['a385']);
  // What would have to go beside it is another one's share.
  assert.equal(goingFor('c', 384, keptBy('a', 200), keptBy('a', 200), keptBy('b', 368)), undefined);
});
