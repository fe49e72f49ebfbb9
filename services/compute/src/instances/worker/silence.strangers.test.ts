import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAbsent, Relapses, SILENCE } from './silence.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

test('a guest that says it is up and is not, each second, has the network told a few dozen times a day', () => {
  const relapses = new Relapses();
  const toldMs: number[] = [];
  for (let nowMs = 0; nowMs < 3 * DAY_MS; nowMs += 1_000) if (relapses.note(nowMs) === 0) toldMs.push(nowMs);
  const inDay = (day: number) => toldMs.filter((atMs) => Math.floor(atMs / DAY_MS) === day).length;
  assert.ok(
    [0, 1, 2].every((day) => inDay(day) < 40),
    `${[0, 1, 2].map(inDay)}`,
  );
  assert.deepEqual(toldMs.slice(0, 3), [0, 1_000, 2_000], 'the first ones at once');
});

test('a guest that starts again now and then has that told at once, and is told how long it waits otherwise', () => {
  const relapses = new Relapses();
  for (let count = 0; count < 3; count++) assert.equal(relapses.note(count), 0);
  assert.equal(relapses.note(10), MINUTE_MS - 8);
  assert.equal(relapses.note(2 + MINUTE_MS), 0);
  assert.equal(relapses.note(3 + MINUTE_MS), 2 * MINUTE_MS - 1);
  for (let day = 2; day < 5; day++) assert.equal(relapses.note(day * DAY_MS), 0);
});

test('a guest that starts itself again does not come up where it takes as long as after its first start', () => {
  const { limitMs } = SILENCE.own;
  const week = 7 * 86_400_000;
  assert.equal(isAbsent(limitMs, limitMs), true);
  assert.equal(isAbsent(week, 3_000), false);
  assert.equal(isAbsent(week, limitMs), true);
  assert.equal(isAbsent(limitMs - 1, week), false);
});
