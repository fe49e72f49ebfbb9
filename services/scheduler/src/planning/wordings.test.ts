import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Wordings } from './wordings.ts';

test('however often figures change, few instances that wait are told anew', () => {
  const wordings = new Wordings();
  let told = 0;
  for (let uptimeMs = 0; uptimeMs < 3_600_000; uptimeMs += 5_000) {
    const count = wordings.left(uptimeMs);
    wordings.use(count);
    told += count;
  }
  assert.ok(told >= 600 && told <= 640, `${told} in an hour`);
  assert.equal(wordings.left(7_200_000), 32);
});
