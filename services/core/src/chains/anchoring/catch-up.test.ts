import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CatchUp, type Look } from './catch-up.ts';

test('a head that was noted before the start is not what a contract has to be read up to: an archive may have been sent since', () => {
  const catchUp = new CatchUp();
  const isDoneAfter = (look: Partial<Look>) => {
    catchUp.note({ isAnew: false, isCut: false, readTo: 12, head: 12, requests: 7, ...look });
    return catchUp.isDone;
  };
  assert.equal(isDoneAfter({}), false);
  assert.equal(isDoneAfter({}), false);
  assert.equal(isDoneAfter({ head: 20, requests: 8 }), false);
  assert.equal(isDoneAfter({ head: 20, requests: 8, readTo: 19 }), false);
  assert.equal(isDoneAfter({ head: 22, requests: 9, readTo: 20 }), true);
  // What it has to be read up to by then was seen.
  assert.equal(isDoneAfter({ head: 22, requests: 9, readTo: 20, isAnew: true }), false);
  assert.equal(isDoneAfter({ head: 22, requests: 9, readTo: 22 }), true);
});
