import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSeldomCheck } from './caught-up.ts';

test('a core node in step is asked once in five seconds, one that is cut off or lacks something each time', async () => {
  let [nowMs, asked, isInStep, lag]: [number, number, boolean, string | null] = [0, 0, true, null];
  const sync = {
    async check() {
      asked++;
      return lag;
    },
    get isInStep() {
      return isInStep;
    },
  };
  const check = createSeldomCheck(sync, () => nowMs);
  const refusal = { code: 'UPSTREAM_UNAVAILABLE', message: 'it is still fetching' };
  await check();
  nowMs = 4_999;
  await check();
  assert.equal(asked, 1);
  [nowMs, lag] = [5_000, refusal.message];
  for (const times of [2, 3]) {
    await assert.rejects(check(), refusal);
    assert.equal(asked, times);
  }
  [lag, isInStep] = [null, false];
  await check();
  await check();
  assert.equal(asked, 5);
});
