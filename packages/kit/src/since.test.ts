import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Since } from './since.ts';

test('a thing is wrong since it was first told so, until it is told well', () => {
  let nowMs = 100;
  const since = new Since(() => nowMs);
  assert.equal(since.note('disk', false), null);
  assert.equal(since.note('disk', true), 100);
  nowMs = 200;
  assert.deepEqual([since.note('disk', true), since.note('clock', true)], [100, 200]);
  assert.equal(since.note('clock', true, 150), 150, 'somebody knows better');
  assert.equal(since.note('clock', true, 180), 150);
  assert.equal(since.note('disk', false), null);
  nowMs = 300;
  assert.deepEqual([since.of('disk'), since.note('disk', true)], [null, 300]);
  since.keepOnly((name) => name === 'disk');
  assert.deepEqual([since.of('disk'), since.of('clock')], [300, null]);
});
