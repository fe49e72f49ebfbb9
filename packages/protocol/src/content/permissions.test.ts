import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LIMITS } from '../limits.ts';
import {
  authorizationsAt,
  decisiveFor,
  findRefusal,
  isAuthorized,
  type SecurityElement,
} from './permissions.ts';

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

test('an act is refused where nothing permits it at its time, or at some time within ten minutes after', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(element, { maxLength: 12, selector: ({ itemHash }) => itemHash }),
      moment,
      (elements, time) => {
        const isPermittedAt = (at: number) => isAuthorized(authorizationsAt(elements, at), act);
        const revoked = elements
          .map(({ since }) => since)
          .filter(
            (since) => since > time && since <= time + LIMITS.revocationSeconds && !isPermittedAt(since),
          );
        const expected = !isPermittedAt(time)
          ? { kind: 'unpermitted' }
          : revoked.length > 0
            ? { kind: 'revoked', at: Math.min(...revoked) }
            : undefined;
        assert.deepEqual(findRefusal(elements, act, time), expected);
        // What comes later in the same batch counts as well.
        elements.push({ time, since: time, itemHash: 'z', authorizations: [] });
        assert.deepEqual(findRefusal(elements, act, time), { kind: 'unpermitted' });
      },
    ),
    { numRuns: 5_000 },
  );
});

test('an owner who changed what others may thousands of times is looked through once', () => {
  let looks = 0;
  const count = 1_000;
  const history = Array.from(
    { length: count },
    (_, n): SecurityElement => ({
      time: n / 10,
      get since() {
        looks++;
        return n / 10;
      },
      itemHash: `${n}`,
      authorizations: [{ address: act.sender }],
    }),
  );
  for (let n = 0; n < 100; n++) assert.equal(findRefusal(history, act, 0), undefined);
  assert.ok(looks < 100 * count, `${looks} looks`);
});

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
