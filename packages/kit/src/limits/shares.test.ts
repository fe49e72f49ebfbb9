import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Held, Shares } from './shares.ts';

test('each client has its share, strangers leave the reserve alone, and nothing is held that nobody holds', () => {
  const steps = fc.array(
    fc.record({ client: fc.nat(5), amount: fc.integer({ min: 1, max: 4 }), back: fc.boolean() }),
  );
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 12 }), fc.nat(6), (list, total, reserve) => {
      const shares = new Shares({ total, reserve, perClient: 5 });
      const held: { client: number; amount: number; place: Held }[] = [];
      const sum = (fits: (client: number) => boolean) =>
        held.reduce((all, { client, amount }) => all + (fits(client) ? amount : 0), 0);
      for (const { client, amount, back } of list) {
        if (back) {
          const place = held.shift()?.place;
          place?.release();
          place?.release();
          continue;
        }
        const isExempt = client === 0;
        const taken = shares.take({ key: `${client}`, isExempt }, amount);
        if (typeof taken !== 'string') held.push({ client, amount, place: taken });
        else if (taken === 'share') assert.ok(!isExempt && sum((one) => one === client) + amount > 5);
        else
          assert.ok(
            sum(() => true) + amount > total ||
              (!isExempt && sum((one) => one !== 0) + amount > total - reserve),
          );
        assert.equal(
          shares.held,
          sum(() => true),
        );
        assert.ok(shares.held <= total && sum((one) => one !== 0) <= Math.max(0, total - reserve));
      }
    }),
  );
});
