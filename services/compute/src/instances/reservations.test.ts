import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Reservations } from './reservations.ts';

const need = { cpu: 1, memoryMib: 512, diskGib: 4 };

test('room is kept from others for a minute, once for each address', () => {
  let nowMs = 1_000;
  const reservations = new Reservations(() => nowMs);
  assert.equal(reservations.take('a', need), 61_000);
  assert.equal(reservations.take('a', { ...need, cpu: 2 }), 61_000);
  assert.deepEqual(reservations.beside('b'), [{ ...need, cpu: 2 }]);
  assert.deepEqual(reservations.beside('a'), []);
  reservations.drop('a');
  assert.deepEqual(reservations.beside('b'), []);
  for (let n = 0; n < 256; n++) assert.ok(reservations.take(`${n}`, need));
  assert.equal(reservations.take('one more', need), undefined);
  nowMs += 60_000;
  assert.deepEqual(reservations.beside('b'), []);
  assert.equal(reservations.take('one more', need), 121_000);
  // The clock was ahead.
  nowMs = 0;
  assert.deepEqual(reservations.beside('b'), []);
});
