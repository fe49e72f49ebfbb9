import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { followPlan } from './follow-plan.ts';
import { distinctNodes, parseBaseUrl, parseCoreNode, parseNodeAggregate } from './node-list.ts';
import { planHour, windowAt } from './plan.ts';
import { nodeAt, VirtualClock } from './testing/scene.ts';

const HOUR_MS = 3_600_000;
const NOW = 1_780_272_000_000 + 1_234;
const nodes = Array.from({ length: 200 }, (_, index) => ({
  ...nodeAt(index % 2 === 0 ? 'core' : 'compute', 'http://node.test/'),
  nodeId: index.toString(16).padStart(64, '0'),
}));

test('a plan follows from seed and hour, visits every node once, and ends before the hour does', () => {
  const window = windowAt(NOW, HOUR_MS);
  assert.equal(window.startMs, NOW - 1_234);
  const plan = planHour(nodes, 'seed', window);
  assert.deepEqual(plan, planHour(nodes.toReversed(), 'seed', window));
  assert.deepEqual(new Set(plan.map(({ node }) => node.nodeId)), new Set(nodes.map((node) => node.nodeId)));
  for (const { atMs } of plan) assert.ok(atMs >= window.startMs && atMs < window.endMs - 120_000);
  const order = (seed: string, at: number) =>
    planHour(nodes, seed, windowAt(at, HOUR_MS)).map(({ node }) => node.nodeId);
  assert.notDeepEqual(order('seed', NOW), order('other', NOW));
  assert.notDeepEqual(order('seed', NOW), order('seed', NOW + HOUR_MS));
  // Evenly over the hour: each quarter has its share.
  for (let quarter = 0; quarter < 4; quarter++) {
    const length = (window.lastVisitMs - window.startMs) / 4;
    const count = plan.filter(({ atMs }) => Math.floor((atMs - window.startMs) / length) === quarter).length;
    assert.ok(count > 25 && count < 75, `${count} of 200 in a quarter`);
  }
});

test('short hours have a margin, too', () => {
  fc.assert(
    fc.property(fc.integer({ min: 5, max: 86_400 }), fc.integer({ min: 0, max: 4e12 }), (seconds, now) => {
      const { startMs, lastVisitMs, endMs } = windowAt(now, seconds * 1000);
      assert.ok(startMs <= now && now < endMs && startMs < lastVisitMs && lastVisitMs < endMs);
    }),
  );
});

test('on a virtual clock: each visit at its time, never more at once than allowed, none lost', async () => {
  const window = windowAt(NOW, HOUR_MS);
  const clock = new VirtualClock(window.startMs);
  const { signal } = new AbortController();
  const late: number[] = [];
  let running = 0;
  let most = 0;
  await clock.drive(
    followPlan(planHour(nodes, 's', window), {
      clock,
      concurrency: 3,
      signal,
      visit: async ({ atMs }) => {
        most = Math.max(most, ++running);
        late.push(clock.now() - atMs);
        await clock.waitUntil(clock.now() + 30_000, signal);
        running--;
      },
    }),
  );
  assert.equal(late.length, nodes.length);
  assert.equal(most, 3);
  assert.ok(late.every((milliseconds) => milliseconds >= 0));
});

test('what is past is made up for at once, and a stop begins nothing more', async () => {
  const window = windowAt(NOW, HOUR_MS);
  const clock = new VirtualClock(window.endMs - 1);
  const stop = new AbortController();
  let visits = 0;
  await followPlan(planHour(nodes, 's', window), {
    clock,
    concurrency: 1,
    signal: stop.signal,
    visit: async () => {
      if (++visits === 50) stop.abort();
    },
  });
  assert.equal(visits, 50);
  assert.equal(clock.now(), window.endMs - 1);
});

test('node lists: what has no id or no address is left out', () => {
  const hash = 'AB'.repeat(32);
  const content = {
    nodes: [
      { hash, multiaddress: '/ip4/192.0.2.7/tcp/4025/p2p/x' },
      { hash, multiaddress: '/dns4/example.org/tcp/4025' },
      { hash: 'xyz', multiaddress: '/ip4/192.0.2.7/tcp/1' },
      null,
      7,
    ],
    resource_nodes: [
      { hash, address: '//node.example.org/base/' },
      { hash, address: 'http://other.example.org' },
      { hash, address: '' },
      { hash, address: 'ftp://no' },
      { hash, address: {} },
    ],
  };
  const nodeId = 'ab'.repeat(32);
  assert.deepEqual(parseNodeAggregate(content), [
    { kind: 'core', nodeId, url: 'http://192.0.2.7:4024/' },
    { kind: 'compute', nodeId, url: 'https://node.example.org/base/' },
    { kind: 'compute', nodeId, url: 'http://other.example.org/' },
  ]);
  assert.equal(distinctNodes(parseNodeAggregate(content)).length, 2);
  assert.equal(parseBaseUrl('http://user:secret@host.test/?q#f'), 'http://host.test/');
  assert.equal(parseCoreNode(`${hash}@http://host.test`).nodeId, nodeId);
  assert.match(parseCoreNode('http://host.test').nodeId, /^[0-9a-f]{64}$/);
  assert.throws(() => parseCoreNode('nonsense'));
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      for (const any of [
        value,
        { nodes: value, resource_nodes: value },
        { nodes: [value], resource_nodes: [value] },
      ])
        for (const node of parseNodeAggregate(any)) assert.match(node.nodeId, /^[0-9a-f]{64}$/);
    }),
  );
});
