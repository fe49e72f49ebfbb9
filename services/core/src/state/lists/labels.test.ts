import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { pairOf } from './labels.ts';

test('two labels have one order, that of the database: a total is looked up where it was counted', () => {
  assert.deepEqual(pairOf('t:\u{1f600}', 't:\uff01'), ['t:\uff01', 't:\u{1f600}']);
  const label = fc.string({ unit: 'binary' });
  fc.assert(
    fc.property(label, label, (x, y) => {
      const [a, b] = pairOf(x, y);
      return Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0;
    }),
  );
});
