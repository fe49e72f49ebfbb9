import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ClientTable } from './rate-limit.ts';

const MINUTE_MS = 60_000;

/** The most requests that were taken in any sixty seconds. */
function mostInAMinute(takenAtMs: readonly number[]): number {
  let first = 0;
  let most = 0;
  for (const [index, at] of takenAtMs.entries()) {
    while (takenAtMs[first]! + MINUTE_MS <= at) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

test('S13: no sixty seconds let through more than the limit, whatever the times, and Retry-After is true', () => {
  const gaps = fc.array(fc.oneof(fc.nat(20), fc.nat(2_000), fc.nat(70_000)), { maxLength: 400 });
  fc.assert(
    fc.property(gaps, fc.integer({ min: 1, max: 60 }), (list, perMinute) => {
      const table = new ClientTable(perMinute);
      const takenAtMs: number[] = [];
      let nowMs = 0;
      for (const gap of list) {
        nowMs += gap;
        let taken = table.take('a', nowMs);
        assert.ok(taken.remaining >= 0 && taken.remaining <= perMinute);
        assert.ok(taken.retryAfterSeconds >= 1 && taken.retryAfterSeconds <= 60 && taken.resetSeconds <= 60);
        if (!taken.isAllowed && gap % 3 === 0) {
          nowMs += taken.retryAfterSeconds * 1000;
          taken = table.take('a', nowMs);
          assert.ok(taken.isAllowed, 'who waits as long as it was told is served');
        }
        if (taken.isAllowed) takenAtMs.push(nowMs);
      }
      assert.ok(mostInAMinute(takenAtMs) <= perMinute);
    }),
  );
});

test('S13: a hundred a minute without a pause gives a hundred in each minute, not two hundred in the first', () => {
  const table = new ClientTable(100);
  const taken = Array.from({ length: 600 }, (_, n) => n * 300).filter((at) => table.take('a', at).isAllowed);
  assert.equal(taken.filter((at) => at < MINUTE_MS).length, 100);
  assert.ok(mostInAMinute(taken) <= 100 && taken.length >= 290);
});
