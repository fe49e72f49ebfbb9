import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COPY_MAX_MS, MESSAGE_MS, PATIENCE_MS, Patience } from './patience.ts';

const HOUR_MS = 3_600_000;

test('time counts while it runs, each message gives some of it back, and a peer that has begun to bring is waited for again', () => {
  let uptimeMs = 0;
  const patience = new Patience(() => uptimeMs);
  uptimeMs += HOUR_MS;
  assert.ok(!patience.isOver, 'nothing began');
  patience.begin();
  uptimeMs += PATIENCE_MS - 1;
  patience.begin();
  assert.ok(!patience.isOver);
  patience.pause();
  uptimeMs += HOUR_MS;
  assert.ok(!patience.isOver);
  patience.begin();
  uptimeMs += 1;
  assert.ok(patience.isOver);
  assert.deepEqual([patience.tellOver(), patience.tellOver()], [true, false]);
  uptimeMs += HOUR_MS;
  // A few messages are no end of it.
  patience.renew(PATIENCE_MS / MESSAGE_MS);
  assert.ok(patience.isOver);
  patience.renew(1);
  assert.ok(!patience.isOver);
  uptimeMs += HOUR_MS;
  patience.restore();
  assert.ok(!patience.isOver);
  uptimeMs += PATIENCE_MS;
  assert.deepEqual([patience.isOver, patience.tellOver()], [true, true]);
});

test('a pause from a moment on takes back what passed since, once, and nothing from before it began', () => {
  let uptimeMs = 0;
  const patience = new Patience(() => uptimeMs);
  patience.begin();
  uptimeMs += PATIENCE_MS;
  assert.ok(patience.isOver);
  patience.pause(PATIENCE_MS - 1);
  patience.pause(0);
  assert.ok(!patience.isOver);
  patience.begin();
  uptimeMs += HOUR_MS;
  patience.pause(0);
  assert.ok(!patience.isOver);
  patience.begin();
  uptimeMs += 1;
  assert.ok(patience.isOver);
});

test('a peer that brings fewer than ten messages a second runs out of time, and the fastest does after three days', () => {
  /** How long one is waited for that brings so many messages each second. */
  const lastOf = (messages: number): number => {
    let uptimeMs = 0;
    const patience = new Patience(() => uptimeMs);
    patience.begin();
    for (; !patience.isOver && uptimeMs < 2 * COPY_MAX_MS; uptimeMs += 1_000) patience.renew(messages);
    return uptimeMs;
  };
  assert.equal(lastOf(0), PATIENCE_MS);
  assert.equal(lastOf(1), Math.ceil(PATIENCE_MS / 900) * 1_000);
  const allMs = COPY_MAX_MS + PATIENCE_MS;
  for (const messages of [10, 1_000]) {
    const lastMs = lastOf(messages);
    assert.ok(lastMs >= allMs && lastMs <= allMs + 2_000, `${messages} a second: ${lastMs} ms`);
  }
});

test('once nothing was waited for, all of the time is there again', () => {
  let uptimeMs = 0;
  const patience = new Patience(() => uptimeMs);
  const copy = () => {
    patience.begin();
    for (let rest = COPY_MAX_MS; rest > 0; rest -= HOUR_MS / 60) {
      uptimeMs += HOUR_MS / 60;
      patience.renew(HOUR_MS);
    }
    assert.ok(!patience.isOver);
  };
  copy();
  patience.restore();
  copy();
  uptimeMs += PATIENCE_MS;
  patience.renew(HOUR_MS);
  assert.ok(patience.isOver);
});

test('a peer that comes to an end in between holds a node for a tenth of the time, and a copy after hours in step has all of it', () => {
  let uptimeMs = 0;
  const patience = new Patience(() => uptimeMs);
  patience.end();
  /** What it says to have it brings once it is not waited for any more. */
  const lie = (): number => {
    patience.begin();
    const sinceMs = uptimeMs;
    for (; !patience.isOver; ) uptimeMs += 1_000;
    return uptimeMs - sinceMs;
  };
  assert.equal(lie(), PATIENCE_MS);
  const startMs = uptimeMs;
  let heldMs = 0;
  while (uptimeMs < startMs + 24 * HOUR_MS) {
    patience.end();
    // So long the node is in step.
    uptimeMs += HOUR_MS / 10;
    heldMs += lie();
  }
  const share = heldMs / (uptimeMs - startMs);
  assert.ok(share > 0.05 && share <= 0.11, `${share}`);
  for (let minute = 0; minute < 120; minute++) {
    patience.end();
    uptimeMs += HOUR_MS / 60;
  }
  assert.equal(lie(), PATIENCE_MS);
});
