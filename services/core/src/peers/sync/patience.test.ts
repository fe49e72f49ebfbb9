import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATIENCE_MS, Patience } from './patience.ts';

const HOUR_MS = 3_600_000;

test('time counts while it runs, each message gives a second back, and a peer that has begun to bring is waited for again', () => {
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
  patience.renew(PATIENCE_MS / 1_000);
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
