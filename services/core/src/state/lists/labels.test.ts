import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyCharacter } from '@skerry/protocol/testing/characters';
import fc from 'fast-check';
import type { Shaped } from '../../intake/pipeline/row.ts';
import { createLabeller, pairOf } from './labels.ts';

test('two labels have one order, that of the database: a total is looked up where it was counted', () => {
  assert.deepEqual(pairOf('t:\u{1f600}', 't:\uff01'), ['t:\uff01', 't:\u{1f600}']);
  const label = fc.string({ unit: anyCharacter });
  fc.assert(
    fc.property(label, label, (x, y) => {
      const [a, b] = pairOf(x, y);
      return Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0;
    }),
  );
});

const DAY_SECONDS = 86_400;
const few = fc.constantFrom('', 'a', 'b');
const orNull = fc.option(few, { nil: null });
const message = fc
  .record({
    ...{ sender: few, type: few, channel: orNull, contentType: orNull },
    tags: fc.array(few, { maxLength: 12 }),
    shape: fc.option(fc.nat(2), { nil: null }),
    day: fc.nat(2),
  })
  .map(
    ({ sender, type, channel, contentType, tags, shape, day }) =>
      ({
        accepted: { message: { sender, type, channel, time: day * DAY_SECONDS + 1 }, contentType, tags },
        shape,
      }) as unknown as Shaped,
  );

test('messages that are written together have the labels that each has alone, and of equal values one list', () => {
  fc.assert(
    fc.property(fc.array(message), (messages) => {
      const labelsOf = createLabeller();
      for (const one of messages) {
        assert.deepEqual(labelsOf(one), createLabeller()(one));
        if (one.accepted.tags.length <= 8) assert.equal(labelsOf(structuredClone(one)), labelsOf(one));
      }
    }),
  );
});
