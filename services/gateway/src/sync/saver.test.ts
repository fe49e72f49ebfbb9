import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLogger } from '@skerry/kit';
import { Saver } from './saver.ts';

const HOUR_MS = 3_600_000;

test('what a full disk did not take is written once there is room, though nothing changes any more', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lines: { level: number; msg: string; failures?: number }[] = [];
  const log = createLogger('test', 'info', { write: (line: string) => void lines.push(JSON.parse(line)) });
  let isFull = true;
  let tries = 0;
  const write = async () => {
    tries++;
    if (isFull) throw new Error('ENOSPC: no space left on device, write');
  };
  const saver = new Saver(write, log);
  const later = async () => {
    t.mock.timers.tick(HOUR_MS);
    await turn();
  };
  saver.changed();
  for (const _ of [1, 2, 3, 4]) await later();
  assert.equal(tries, 4);
  isFull = false;
  await later();
  await later();
  assert.equal(tries, 5, 'once, and no more');
  const what = 'the table could not be stored and is kept in memory';
  assert.deepEqual(
    lines.map(({ msg, failures }) => [msg, failures]),
    [
      [what, 1],
      [what, 4],
      [`recovered: ${what}`, 4],
    ],
  );
  isFull = true;
  saver.changed();
  await saver[Symbol.asyncDispose]();
  await later();
  assert.equal(tries, 6, 'what ends tries once more');
});
