import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Held } from './shares.ts';
import { YieldingShares } from './yielding-shares.ts';

const client = (key: string, isExempt = false) => ({ key, isExempt });

test('where strangers have no place left, who has none takes the oldest of the client that has most, and nobody loses its last', () => {
  const shares = new YieldingShares({ total: 6, reserve: 1, perClient: 3 });
  const ended: string[] = [];
  const take = (key: string, isExempt = false) => {
    const name = `${key}${count++}`;
    const place = shares.take(client(key, isExempt), () => ended.push(name));
    return typeof place === 'string' ? place : 'taken';
  };
  let count = 0;
  assert.deepEqual(
    ['a', 'b', 'a', 'a', 'b'].map((key) => take(key)),
    Array(5).fill('taken'),
  );
  assert.deepEqual([take('a'), take('b'), ended], ['share', 'all', []], 'only for who has none');
  assert.deepEqual([take('c'), ended], ['taken', ['a0']]);
  assert.deepEqual([take('d'), take('e'), ended], ['taken', 'taken', ['a0', 'b1', 'a2']]);
  assert.deepEqual([take('f'), ended.length], ['all', 3], 'everybody has one');
  assert.deepEqual([take('own', true), take('own', true)], ['taken', 'all']);
});

test('where they wait in line, the newest goes instead', () => {
  const shares = new YieldingShares({ total: 3, reserve: 0, perClient: 3 }, 'newest');
  const ended: number[] = [];
  const [first, , last] = [0, 1, 2].map((n) => shares.take(client('a'), () => ended.push(n)));
  assert.deepEqual([typeof shares.take(client('b'), () => {}), ended], ['object', [2]]);
  for (const place of [first, last]) (place as Held).release();
  assert.equal(shares.heldBy('a'), 1, 'it was given back already');
});

test('our own come as if they had none', () => {
  const shares = new YieldingShares({ total: 3, reserve: 1, perClient: 3 });
  const own = client('own', true);
  let ended = 0;
  const take = (of: typeof own) => typeof shares.take(of, () => ended++) === 'object';
  assert.deepEqual(
    [take(client('a')), take(client('a')), take(own), take(own), ended],
    [true, true, true, true, 1],
  );
  assert.deepEqual([take(own), ended], [false, 1], 'the stranger keeps its last');
});

/** A /64 of a /48. */
const site = (network: number, number: number) => client(`2001:db8:${network}:${number}::/64`);

test('one customer of a network who comes as many clients keeps nobody out, and displaces nobody who has one', () => {
  const shares = new YieldingShares({ total: 6, reserve: 1, perClient: 3 });
  const ended: string[] = [];
  const take = (of: ReturnType<typeof client>) => {
    const place = shares.take(of, () => ended.push(of.key));
    return typeof place === 'string' ? place : 'taken';
  };
  const all = [1, 2, 3, 4, 5].map((number) => site(1, number));
  for (const one of all) assert.equal(take(one), 'taken');
  assert.deepEqual([take(site(1, 6)), take(all[0]!)], ['all', 'all']);
  assert.deepEqual([take(client('198.51.100.1')), take(site(2, 1))], ['taken', 'taken']);
  assert.deepEqual(ended, [all[0]!.key, all[1]!.key]);
  assert.deepEqual([take(site(2, 2)), ended.length], ['taken', 3]);
  assert.equal(take(site(2, 3)), 'all', 'its network would have more than the other afterwards');
  assert.deepEqual([take(client('198.51.100.2')), take(site(1, 6))], ['taken', 'all']);
  assert.deepEqual([take(site(3, 1)), ended.length], ['taken', 5]);
  assert.deepEqual([take(client('198.51.100.3')), ended.length], ['all', 5], 'each network has one');
});

test('a client that has several goes before a network that has more', () => {
  const shares = new YieldingShares({ total: 5, reserve: 0, perClient: 3 });
  const ended: string[] = [];
  const take = (of: ReturnType<typeof client>) =>
    typeof shares.take(of, () => ended.push(of.key)) === 'object';
  for (const one of [site(1, 1), site(1, 2), site(1, 3), client('a'), client('a')]) assert.ok(take(one));
  assert.deepEqual([take(client('b')), ended], [true, ['a']]);
  assert.deepEqual([take(client('own', true)), ended.at(-1)], [true, site(1, 1).key]);
});

test('whoever comes and goes, no more is held than there is, and who was ended holds nothing', () => {
  const steps = fc.array(fc.record({ of: fc.nat(5), back: fc.boolean() }), { maxLength: 60 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 6 }), fc.nat(2), (list, total, reserve) => {
      const shares = new YieldingShares({ total, reserve, perClient: 3 });
      const held = new Map<Held, number>();
      const countOf = (of: number) => [...held.values()].filter((one) => one === of).length;
      for (const { of, back } of list) {
        const [oldest] = held.keys();
        if (back && oldest) {
          held.delete(oldest);
          oldest.release();
          oldest.release();
          continue;
        }
        let place: Held | string = '';
        place = shares.take(client(`${of}`, of === 0), () => held.delete(place as Held));
        if (typeof place !== 'string') held.set(place, of);
        else if (place === 'share') assert.equal(countOf(of), 3);
        else if (of === 0 || countOf(of) === 0)
          assert.ok(
            [...held.values()].every((one) => one === 0 || countOf(one) === 1),
            'nobody has several',
          );
        assert.ok(held.size <= total);
        assert.ok([...held.values()].filter((one) => one !== 0).length <= Math.max(0, total - reserve));
      }
    }),
  );
});
