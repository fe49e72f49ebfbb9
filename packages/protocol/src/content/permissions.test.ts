import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LIMITS } from '../limits.ts';
import { decisiveFor, findRefusal, type SecurityElement } from './permissions.ts';

const act = {
  sender: '0xa',
  chain: 'ETH',
  channel: null,
  type: 'POST',
  contentType: null,
  aggregateKey: null,
};
/** Around the time within which a revocation defeats an act. */
const moment = fc.integer({ min: 0, max: 8 }).map((step) => (step * LIMITS.revocationSeconds) / 2);
const element = fc
  .record({
    time: moment,
    lateBy: moment,
    itemHash: fc.stringMatching(/^[0-9a-f]{4}$/),
    permits: fc.boolean(),
  })
  .map(
    ({ time, lateBy, itemHash, permits }): SecurityElement => ({
      ...{ time, since: time + lateBy, itemHash },
      authorizations: permits ? [{ address: act.sender }] : [],
    }),
  );

test('what is decisive for acts decides about them as all elements do, and is little', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(element, { maxLength: 12, selector: ({ itemHash }) => itemHash }),
      fc.array(moment, { maxLength: 4 }),
      (elements, times) => {
        const decisive = decisiveFor(elements, times);
        for (const time of times)
          assert.deepEqual(findRefusal(decisive, act, time), findRefusal(elements, act, time));
        const mayMatter = ({ since }: SecurityElement) =>
          times.some((time) => since > time && since <= time + LIMITS.revocationSeconds);
        const held = decisive.filter((one) => !mayMatter(one));
        assert.ok(held.length <= new Set(times).size);
      },
    ),
    { numRuns: 5_000 },
  );
  const many = Array.from({ length: 1_000 }, (_, n) => ({
    time: n * 1_000,
    since: n * 1_000,
    itemHash: `${n}`,
  }));
  assert.deepEqual(decisiveFor(many, [500_500]), [many[500], many[501]]);
});
