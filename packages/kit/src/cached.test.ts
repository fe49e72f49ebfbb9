import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cached, within } from './cached.ts';

test('made once while it is fresh, shared by all who ask meanwhile; a failure is not kept', async () => {
  let nowMs = 0;
  let made = 0;
  let fails = false;
  const read = cached(
    10,
    async () => {
      made++;
      if (fails) throw new Error('away');
      return made;
    },
    () => nowMs,
  );
  assert.deepEqual(await Promise.all([read(), read(), read()]), [1, 1, 1]);
  nowMs = 9;
  assert.equal(await read(), 1);
  nowMs = 10;
  assert.equal(await read(), 2);
  nowMs = 30;
  fails = true;
  await assert.rejects(Promise.all([read(), read()]), /away/);
  assert.equal(made, 3);
  fails = false;
  assert.equal(await read(), 4);
});

test('what does not come in time is late; what comes is what it is', async () => {
  assert.equal(await within(1, new Promise<string>(() => {}), 'late'), 'late');
  assert.equal(await within(60_000, Promise.resolve('here'), 'late'), 'here');
  await assert.rejects(within(60_000, Promise.reject(new Error('away')), 'late'), /away/);
});
