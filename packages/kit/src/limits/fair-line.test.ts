import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { networkKeyOf } from '../net/client-address.ts';
import { FairLine, type Waiter } from './fair-line.ts';

const KEYS = ['198.51.100.1', '198.51.100.2', ...[1, 2, 3].map((site) => `2001:db8:1:${site}::/64`)];

/** The house rule of turns, looked up the long way. */
function compare(one: readonly number[], other: readonly number[]): number {
  const index = one.findIndex((number, place) => number !== other[place]);
  return index < 0 ? 0 : one[index]! - other[index]!;
}

test('whoever comes, leaves and is served: the first is who has the fewest, of these the fewest near, then the longest not served', () => {
  const step = fc.record({
    key: fc.constantFrom(...KEYS),
    isExempt: fc.boolean(),
    act: fc.constantFrom('join', 'leave', 'take', 'give', 'serve'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const [held, served] = [new Map<string, number>(), new Map<string, number>()];
      const heldBy = (key: string) => held.get(key) ?? 0;
      const heldNear = (key: string) => {
        const near = networkKeyOf(key);
        const all = KEYS.filter((other) => other === key || (near && networkKeyOf(other) === near));
        return all.reduce((sum, other) => sum + heldBy(other), 0);
      };
      const servedAt = (key: string) => served.get(key) ?? 0;
      const line = new FairLine({ networkOf: networkKeyOf, heldBy, heldNear, servedAt });
      const waiting: { key: string; isExempt: boolean; waiter: Waiter }[] = [];
      const rankOf = ({ key, isExempt, waiter }: (typeof waiting)[number]) => [
        ...(isExempt ? [0, 0] : [heldBy(key), heldNear(key)]),
        ...[servedAt(key), waiter.nth],
      ];
      for (const [nth, { key, isExempt, act }] of steps.entries()) {
        if (act === 'join') {
          const one = { key, isExempt, waiter: { begin: () => {}, nth } };
          waiting.push(one);
          line.join(one, one.waiter);
        } else if (act === 'leave') {
          const index = waiting.findIndex((one) => one.key === key && one.isExempt === isExempt);
          const [one] = index < 0 ? [] : waiting.splice(index, 1);
          if (one) line.leave(one, one.waiter);
        } else {
          if (act === 'serve') served.set(key, nth + 1);
          else held.set(key, Math.max(0, heldBy(key) + (act === 'take' ? 1 : -1)));
          line.note(key);
        }
        const [first] = waiting.toSorted((a, b) => compare(rankOf(a), rankOf(b)));
        assert.equal(line.first(() => true)?.waiter, first?.waiter);
        assert.equal(line.count, waiting.length);
        const own = waiting.filter((one) => one.isExempt).toSorted((a, b) => compare(rankOf(a), rankOf(b)));
        assert.equal(line.first((client) => client.isExempt)?.waiter, own[0]?.waiter);
      }
    }),
  );
});
