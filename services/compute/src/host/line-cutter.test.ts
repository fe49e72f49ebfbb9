import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineCutter } from './line-cutter.ts';

test("returns at the end of a line are left out, and cost a guest's host no time elsewhere", () => {
  const cutter = new LineCutter(10);
  assert.deepEqual(cutter.push(Buffer.from('one\r\n\r\r\ntwo\rthree\r\r\nfo')), ['one', '', 'two\rthree']);
  assert.deepEqual(cutter.finish(), ['fo']);
  const startUs = process.cpuUsage().user;
  for (let turn = 0; turn < 4; turn++) cutter.push(Buffer.from(`${'\r'.repeat(65_535)}x`));
  const spentMs = (process.cpuUsage().user - startUs) / 1_000;
  assert.ok(spentMs < 3_000, `${spentMs} ms`);
});
