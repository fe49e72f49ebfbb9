import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimLimit, createLane, roomOf, slowAfterMs } from './lane.ts';

test('only where room is short, and only of endpoints that never answered, an attempt is slow early', () => {
  const [proven, unproven] = [{ isProven: true }, { isProven: false }];
  assert.equal(slowAfterMs(proven, true), slowAfterMs(proven, false));
  assert.equal(slowAfterMs(unproven, false), slowAfterMs(proven, false));
  // Of a thousand dead ones whose events come in one second, room for 256 is free again before the second is over.
  assert.ok(slowAfterMs(unproven, true) <= 1_000 / 4);
});

test('an endpoint takes no more ahead of the table than it would be given from there', () => {
  for (const concurrency of [1, 8, 32]) {
    const room = roomOf(createLane(1), concurrency, 0);
    assert.equal(room, claimLimit({ ...createLane(1), isReady: true }, concurrency, 0));
  }
});
