import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { chooseProbes } from './chain/ancestor.ts';
import { isTelling } from './chain/bloom.ts';
import { secondHighest } from './chain/look.ts';
import type { Header } from './chain/shape.ts';
import { decideJoin } from './join.ts';
import { decideLooks } from './read/matches.ts';
import { progressOf, stateOf } from './read/status.ts';
import { stallMsOf } from './settings.ts';
import { decidePass, type Scan } from './store/scans.ts';

const scan = (more: Partial<Scan>): Scan => ({
  id: 1,
  contractId: 1,
  address: '0x',
  kind: 'events',
  topics: [],
  fromBlock: 0,
  nextBlock: 0,
  priorHash: null,
  toBlock: null,
  live: false,
  ...more,
});

const windowOf = (from: number, to: number): Header[] =>
  Array.from({ length: to - from + 1 }, (_, index) => ({
    number: from + index,
    hash: `0x${from + index}`,
    parentHash: `0x${from + index - 1}`,
    timestamp: 0,
    bloom: '0x',
  }));

test('the last shared block is found in few looks, wherever it is', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5_000 }),
      fc.nat(),
      fc.integer({ min: 1, max: 16 }),
      (length, place, probesMax) => {
        const ancestor = (place % (length + 1)) - 1;
        let [low, high] = [-1, length];
        let looks = 0;
        while (high - low > 1) {
          const probes = chooseProbes(low, high, probesMax);
          assert.ok(probes.length > 0 && probes.length <= probesMax);
          assert.ok(probes.every((one) => one > low && one < high));
          low = Math.max(low, ...probes.filter((one) => one <= ancestor));
          high = Math.min(high, ...probes.filter((one) => one > ancestor));
          looks++;
        }
        assert.equal(low, ancestor);
        assert.ok(looks <= 1 + Math.ceil(Math.log(length + 1) / Math.log((probesMax + 1) / 1.2)) * 2);
      },
    ),
  );
});

describe('what is read next of the window', () => {
  const window = windowOf(100, 400);

  test('what stands lowest, up to where the next one stands, in pieces', () => {
    const near = [scan({ id: 1, nextBlock: 150 }), scan({ id: 2, nextBlock: 160 })];
    const join = decideJoin(near, window);
    assert.deepEqual(
      [join?.scans.map(({ id }) => id), join?.blocks[0]?.number, join?.blocks.at(-1)?.number],
      [[1], 150, 159],
    );
    const far = decideJoin([scan({ nextBlock: 120 })], window);
    assert.equal(far?.blocks.length, 128);
  });

  test('one that has read up to the tip needs no block; one that ends before it gets no more than it wants', () => {
    assert.deepEqual(decideJoin([scan({ nextBlock: 401 })], window)?.blocks, []);
    assert.equal(decideJoin([scan({ nextBlock: 390, toBlock: 395 })], window)?.blocks.at(-1)?.number, 395);
  });

  test('what the backfill has to read, what is done, what begins later and what follows the tip are left alone', () => {
    const others = [
      scan({ nextBlock: 99 }),
      scan({ nextBlock: 301, toBlock: 300 }),
      scan({ nextBlock: 402, fromBlock: 402 }),
      scan({ nextBlock: 200, live: true }),
    ];
    assert.equal(decideJoin(others, window), undefined);
  });
});

test('finality is what two have reached, and what the only one has', () => {
  assert.equal(secondHighest([5, 1_000_000_000, 7]), 7);
  assert.equal(secondHighest([7]), 7);
  assert.equal(secondHighest([]), undefined);
});

test('a tip that moves does not hide a backfill that stands still, nor the other way round', () => {
  const [old, fresh] = [new Date(1_000), new Date(9_000)];
  const network = { head: 10, tipNumber: 10, progressAt: fresh, backfilledAt: old };
  assert.equal(progressOf(network, [scan({ nextBlock: 5 })]), old);
  assert.equal(progressOf(network, [scan({ live: true })]), fresh);
  const behind = { ...network, head: 12, progressAt: old, backfilledAt: fresh };
  assert.equal(progressOf(behind, [scan({ live: true })]), old);
  assert.equal(progressOf(network, [scan({ nextBlock: 5, toBlock: 4 })]), fresh);
});

test('a network is live while it is seen that all is read, and never before it has begun', () => {
  const said = { halt: null, lag: 0, hasBegun: true, progressAt: new Date(10_000) };
  assert.equal(stateOf(said, 1_000, 11_000), 'live');
  assert.equal(stateOf(said, 1_000, 11_001), 'stalled');
  assert.equal(stateOf({ ...said, lag: 3 }, 1_000, 11_000), 'catching_up');
  assert.equal(stateOf({ ...said, hasBegun: false }, 1_000, 11_000), 'catching_up');
  assert.equal(stateOf({ ...said, halt: { code: 'WRONG_CHAIN', message: '' } }, 1_000, 11_001), 'halted');
  assert.equal(stateOf(said, undefined, 11_000), 'not_read');
});

test('a stall takes longer than the head is left alone', () => {
  const polled = { stall_ms: 300_000, poll_ms: 2_000, subscriptions: [] };
  assert.equal(stallMsOf(polled), 300_000);
  assert.equal(stallMsOf({ ...polled, poll_ms: 600_000 }), 1_200_000);
  assert.equal(stallMsOf({ ...polled, poll_ms: 20_000, subscriptions: ['wss://one.example'] }), 600_000);
});

test('a bloom of few bits is nearly a proof, a full one is none', () => {
  assert.ok(isTelling(`0x${'1'.repeat(100)}${'0'.repeat(412)}`));
  assert.ok(!isTelling(`0x${'f'.repeat(512)}`));
});

test('partitions are looked at newest first, twice as many each time, and only the blocks that are wanted', () => {
  const partitions = [400, 300, 200, 100, 0].map((from) => ({ from, to: from + 99 }));
  assert.deepEqual(decideLooks(partitions, { from: 50, to: 450 }), [
    { from: 400, to: 450 },
    { from: 200, to: 399 },
    { from: 50, to: 199 },
  ]);
  assert.deepEqual(decideLooks([], { from: 0, to: 10 }), []);
});

test('who followed the tip is not read after a past that others want, nor does that wait for ever', () => {
  const past = scan({ id: 1, nextBlock: 10 });
  const behind = [scan({ id: 2, nextBlock: 900 }), scan({ id: 3, contractId: 2, nextBlock: 900 })];
  const scans = [past, ...behind, scan({ id: 4, live: true }), scan({ id: 5, nextBlock: 2_000 })];
  assert.deepEqual(decidePass(scans, 1_000, 'nearest'), {
    ...{ kind: 'events', scans: behind, from: 900, to: 1_000 },
    othersFrom: 10,
  });
  assert.deepEqual(decidePass(scans, 1_000, 'furthest'), {
    ...{ kind: 'events', scans: [past], from: 10, to: 899 },
    othersFrom: 900,
  });
  const alone = { kind: 'events', scans: [past], from: 10, to: 1_000, othersFrom: Number.POSITIVE_INFINITY };
  for (const order of ['nearest', 'furthest'] as const) {
    assert.deepEqual(decidePass([past], 1_000, order), alone);
    assert.equal(decidePass([], 1_000, order), undefined);
  }
});
