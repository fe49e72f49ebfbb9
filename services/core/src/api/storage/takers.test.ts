import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { slowestOf, type Taker } from './takers.ts';

const taker = (key: string, taken: number | undefined, isExempt = false): Taker => ({
  client: { key, isExempt },
  taken,
});

test('the slowest of the last minute goes: no reader of our own, none that waits for bytes itself, none of a client with little', () => {
  const held = new Map([
    ['own', 9],
    ['much', 8],
    ['more', 3],
    ['little', 1],
  ]);
  const heldBy = (key: string) => held.get(key) ?? 0;
  const own = taker('own', 0, true);
  const waiting = taker('much', undefined);
  const little = taker('little', 1);
  const more = taker('more', 2);
  const much = taker('much', 3);
  const all = [own, waiting, much, more, little];
  const picked = Array.from({ length: 9 }, (_, count) => slowestOf(all, count, heldBy));
  assert.deepEqual(picked, [little, more, much, much, much, much, much, undefined, undefined]);
  const [longest, later] = [taker('much', 7), taker('more', 7)];
  assert.equal(slowestOf([longest, later], 0, heldBy), longest);
});

test('whoever comes, each that goes is the slowest that may, and no client is left with less than who came, unless that had none', () => {
  const takers = fc.array(
    fc.record({ client: fc.nat(4), taken: fc.option(fc.nat(5), { nil: undefined }), isOwn: fc.boolean() }),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(takers, fc.array(fc.nat(6), { maxLength: 30 }), (listed, coming) => {
      const held = new Map<string, number>();
      const heldBy = (key: string) => held.get(key) ?? 0;
      const note = (key: string, more: number) => held.set(key, heldBy(key) + more);
      const all = new Set(
        listed.map(({ client, taken, isOwn }) => taker(`${isOwn ? 'own' : ''}${client}`, taken, isOwn)),
      );
      for (const { client } of all) note(client.key, 1);
      for (const key of coming.map(String)) {
        const may = [...all].filter(
          ({ client, taken }) =>
            !client.isExempt &&
            taken !== undefined &&
            heldBy(client.key) > heldBy(key) + Math.min(1, heldBy(key)),
        );
        const going = slowestOf(all, heldBy(key), heldBy);
        assert.equal(going?.taken, may.length === 0 ? undefined : Math.min(...may.map((one) => one.taken!)));
        if (!going) continue;
        assert.ok(may.includes(going));
        all.delete(going);
        note(going.client.key, -1);
        note(key, 1);
        assert.ok(heldBy(key) === 1 || heldBy(going.client.key) >= heldBy(key));
      }
    }),
  );
});
