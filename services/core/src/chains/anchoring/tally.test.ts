import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PackedTally } from './tally.ts';

test('an archive every two seconds is a line in ten minutes, which counts them all', () => {
  const tally = new PackedTally();
  const told = [];
  for (let second = 0; second <= 3_600; second += 2) {
    const packed = tally.add(3, second * 1_000);
    if (packed) told.push(packed);
  }
  assert.deepEqual(told[0], { archives: 1, messages: 3 });
  assert.deepEqual(
    told.slice(1),
    Array.from({ length: 6 }, () => ({ archives: 300, messages: 900 })),
  );
});

test('a clock that is set back silences nobody', () => {
  const tally = new PackedTally();
  assert.ok(tally.add(1, 10_000_000));
  assert.deepEqual(tally.add(2, 9_000_000), { archives: 1, messages: 2 });
});
