import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hangs, isAbsent, Relapses, SILENCE } from './silence.ts';

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

test('a QEMU that hangs is told once, however often it is asked, and that it answers again; of one that is gone others tell', () => {
  const hangs = new Hangs();
  assert.equal(hangs.note('ready', 0), undefined);
  assert.deepEqual(hangs.note('silent', 1_000), { is: 'hanging' });
  for (let nowMs = 16_000; nowMs < DAY_MS; nowMs += 15_000)
    assert.equal(hangs.note('silent', nowMs), undefined);
  assert.deepEqual(hangs.note('ready', DAY_MS), { is: 'answering', afterMs: DAY_MS - 1_000 });
  assert.equal(hangs.note('ready', DAY_MS + 1), undefined);
  assert.deepEqual(hangs.note('silent', DAY_MS + 2), { is: 'hanging' });
  assert.equal(hangs.note('none', DAY_MS + 3), undefined);
  assert.equal(hangs.isTold, false);
});

test('a QEMU that hangs and answers in turns, each minute, is told a few dozen times a day; a hang that lasts is told all the same', () => {
  const hangs = new Hangs();
  let told = 0;
  for (let nowMs = 0; nowMs < DAY_MS; nowMs += MINUTE_MS)
    for (const [state, afterMs] of [
      ['silent', 0],
      ['silent', 15_000],
      ['ready', 30_000],
    ] as const)
      if (hangs.note(state, nowMs + afterMs)) told++;
  assert.ok(told < 80, `${told}`);
  let isTold = false;
  for (let nowMs = DAY_MS; nowMs < DAY_MS + 2 * 60 * MINUTE_MS && !isTold; nowMs += 15_000)
    isTold = hangs.note('silent', nowMs)?.is === 'hanging';
  assert.ok(isTold);
});
