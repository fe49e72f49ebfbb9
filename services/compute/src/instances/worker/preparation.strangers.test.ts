import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isProgressDue } from './preparation.ts';

test('an image that takes an hour is told of a hundred times at most, the first seconds one by one', () => {
  const begunMs = 1_000_000;
  const toldMs: number[] = [];
  for (let nowMs = begunMs; nowMs < begunMs + 3_600_000; nowMs += 100)
    if (isProgressDue(begunMs, toldMs.at(-1) ?? 0, nowMs)) toldMs.push(nowMs);
  assert.deepEqual(
    toldMs.slice(0, 5).map((atMs) => atMs - begunMs),
    [0, 1_000, 2_000, 3_000, 4_000],
  );
  assert.ok(toldMs.length < 100, `${toldMs.length} times`);
});
