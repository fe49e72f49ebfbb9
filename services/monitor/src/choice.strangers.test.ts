import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import fc from 'fast-check';
import { chooseNodes, keyOf, newcomersMax, noteAnswers, takeTurns } from './choice.ts';
import { HourStore } from './hour-store.ts';
import { Hours } from './hours.ts';
import { distinctNodes, type MeasuredNode } from './node-list.ts';
import { windowAt } from './plan.ts';
import { VISIT_MS_MAX } from './probe/measure.ts';
import { VirtualClock } from './testing/scene.ts';

const log = createLogger('monitor', 'silent');
const HOUR_MS = 3_600_000;
const START = 494_520 * HOUR_MS;
const CONCURRENCY = 20;
const announced = (index: number): MeasuredNode => ({
  kind: 'compute',
  nodeId: index.toString(16).padStart(64, '0'),
  url: 'http://node.test/',
  address: `0x${index.toString(16).padStart(40, '0')}`,
});
const idsOf = (nodes: readonly MeasuredNode[]) => nodes.map(({ nodeId }) => nodeId);
const strangers = Array.from({ length: 5_000 }, (_, index) => announced(index + 100));
const { address: _, ...listed } = announced(1);
const honest = announced(2);
const nodes = [...strangers, listed, honest];
const answered = new Map([[keyOf('compute', honest.nodeId), START - HOUR_MS]]);
const choose = (hour: number, seed = 'seed', from: readonly MeasuredNode[] = nodes) =>
  chooseNodes(from, {
    answered,
    seed,
    window: windowAt(START + hour * HOUR_MS, HOUR_MS),
    concurrency: CONCURRENCY,
  });

test('M6: thousands of silent nodes take a part of the hour; who answered or is listed has each hour', () => {
  const window = windowAt(START, HOUR_MS);
  const max = newcomersMax(window, CONCURRENCY);
  assert.ok((max * VISIT_MS_MAX) / CONCURRENCY <= HOUR_MS / 4);
  for (let hour = 0; hour < 3; hour++) {
    const chosen = idsOf(choose(hour));
    assert.equal(chosen.length, max + 2);
    assert.ok(chosen.includes(listed.nodeId) && chosen.includes(honest.nodeId));
  }
});

test('M6: newcomers take turns: each has one before any has a second, and nobody can foretell it', () => {
  const max = newcomersMax(windowAt(START, HOUR_MS), CONCURRENCY);
  const rounds = Math.ceil(strangers.length / max);
  const seen = new Set<string>();
  for (let hour = 0; hour < rounds; hour++) for (const id of idsOf(choose(hour))) seen.add(id);
  assert.equal(seen.size, nodes.length);
  assert.deepEqual(choose(1), choose(1));
  assert.deepEqual(new Set(idsOf(choose(1))), new Set(idsOf(choose(1, 'seed', nodes.toReversed()))));
  assert.notDeepEqual(new Set(idsOf(choose(1))), new Set(idsOf(choose(1, 'other'))));
});

test('M6: in its first hour a monitor visits a newcomer that stands behind a flood from one place, and the flood has the rest', () => {
  const max = newcomersMax(windowAt(START, HOUR_MS), CONCURRENCY);
  const flood = (urlOf: (index: number) => string) =>
    strangers.map((node, index) => ({ ...node, url: urlOf(index) }));
  const byName = flood((index) => `http://n${index}.flood.test/`);
  const byAddress = flood((index) => `http://198.51.100.${index % 250}:${1_000 + index}/`);
  const byIpv6 = flood((index) => `http://[2a09:1:2:${index.toString(16)}::1]/`);
  const byShortName = flood((index) => `http://n${index}.abc.xyz/`);
  const byZeros = flood((index) => `http://[2a09::${index.toString(16)}]/`);
  for (const some of [byName, byAddress, byIpv6, byShortName, byZeros])
    for (const url of [
      'http://honest.test/',
      'http://192.0.2.1:4020/',
      'http://[2a00:1::1]/',
      'http://a.co.uk/',
    ]) {
      const one = { ...announced(3), url };
      const other = { ...announced(4), url: 'http://b.co.uk/' };
      for (let hour = 0; hour < 3; hour++) {
        const chosen = chooseNodes([...some, one, other], {
          ...{ answered: new Map(), seed: 'seed', concurrency: CONCURRENCY },
          window: windowAt(START + hour * HOUR_MS, HOUR_MS),
        });
        assert.ok(chosen.includes(one) && chosen.includes(other));
        assert.equal(new Set(idsOf(chosen)).size, max);
      }
    }
});

test('M6: turns of newcomers: no node twice in an hour, all in as few hours as their share allows, whatever owners there are', () => {
  const names = (owner: number, count: number) =>
    Array.from({ length: count }, (_, index) => `${owner} ${index}`);
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 40 }),
      fc.nat(1_000),
      (sizes, wanted, hour) => {
        const owners = sizes.map((size, owner) => names(owner, size));
        const all = owners.flat();
        const count = Math.min(wanted, all.length);
        const seen = new Set<string>();
        // At most so many hours pass until each owner has had a turn, and each of its nodes one of these.
        const hours = Math.ceil(owners.length / count) * Math.max(...sizes) + 1;
        for (let passed = 0; passed < hours; passed++) {
          const turns = takeTurns(owners, count, hour + passed);
          assert.deepEqual([turns.length, new Set(turns).size], [count, count]);
          for (const one of turns) seen.add(one);
        }
        assert.equal(seen.size, all.length);
      },
    ),
  );
});

test('M6: who answers is known from the next hour on, and forgotten a day after its last answer', () => {
  const entry = (node: MeasuredNode, more = {}) => ({
    kind: node.kind,
    record: { node_id: node.nodeId, ...more },
  });
  const [a, b] = [announced(7), announced(8)];
  const entries = [entry(a, { base_latency_ipv4: 0.1 }), entry(b, { codes: [2003] })];
  const first = noteAnswers(new Map(), entries, START, HOUR_MS);
  assert.deepEqual([...first.keys()], [keyOf('compute', a.nodeId)]);
  assert.deepEqual(noteAnswers(first, entries, START, HOUR_MS), first);
  const silent = (hours: number) => noteAnswers(first, [entry(a)], START + hours * HOUR_MS, HOUR_MS).size;
  assert.deepEqual([1, 24, 25].map(silent), [1, 1, 0]);
  // An hour under a clock that was a year ahead, and the hours after it was set right.
  const ahead = noteAnswers(first, entries, START + 365 * 24 * HOUR_MS, HOUR_MS);
  const after = noteAnswers(ahead, [entry(a)], START + HOUR_MS, HOUR_MS);
  const later = (hours: number) => noteAnswers(after, [], START + hours * HOUR_MS, HOUR_MS).size;
  assert.deepEqual([1, 25, 26].map(later), [1, 1, 0]);
});

test('M6: a node that is listed and announced has each hour and proves its key; one with another URL cannot', () => {
  const [both] = distinctNodes([listed, announced(1)]);
  assert.deepEqual(both, { ...announced(1), isListed: true });
  assert.ok(choose(0, 'seed', [...strangers, both!]).includes(both!));
  assert.deepEqual(distinctNodes([listed, { ...announced(1), url: 'http://other.test/' }]), [listed]);
});

test('M6: a monitor that was killed goes on with the same nodes, and knows after the hour who answered', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-monitor-'));
  const clock = new VirtualClock(START);
  const store = clock.stopDuring(await HourStore.create(dir, log));
  const visited: string[][] = [];
  const create = (stop: AbortController, visits: number) => {
    const mine: string[] = [];
    visited.push(mine);
    return new Hours({
      ...{ clock, hourMs: HOUR_MS, concurrency: 1, seed: 'seed', store, signal: stop.signal },
      log,
      listNodes: async () => strangers.slice(0, 1_000),
      measure: async ({ nodeId }) => {
        if (mine.push(nodeId) > visits) stop.abort();
        return { node_id: nodeId, measured_at: clock.now() / 1000, base_latency: 0.1 };
      },
      sign: () => [{ itemHash: 'x', body: '' }],
      send: async () => {},
    });
  };
  await clock.drive(create(new AbortController(), 40).runHour());
  await clock.drive(create(new AbortController(), 1_000).runHour());
  const [first, second] = visited as [string[], string[]];
  // The one that was cut off is visited again.
  assert.deepEqual([first.length, second.length], [41, 60]);
  assert.equal(new Set([...first, ...second]).size, 100);
  // In the next hour they are known, and others have their turns.
  await clock.drive(create(new AbortController(), 1_000).runHour());
  assert.equal(visited[2]!.length, 200);
  await rm(dir, { recursive: true });
});

test('M6: strangers who let visits last keep no listed node waiting, nor one of another place, and the log says how many the hour left out', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-monitor-'));
  const clock = new VirtualClock(START);
  const told: string[] = [];
  const signed: string[] = [];
  const known = Array.from({ length: 10 }, (_, index) => {
    const { address: _address, ...node } = announced(index + 1);
    return node;
  });
  const isKnown = (id: string) => idsOf(known).includes(id);
  // Nobody listed them, and they answer at once, from other places.
  const quick = [
    { ...announced(20), url: 'http://elsewhere.test/' },
    { ...announced(21), url: 'http://192.0.2.1/' },
  ];
  const hours = new Hours({
    ...{ clock, hourMs: HOUR_MS, concurrency: 4, seed: 'seed', signal: new AbortController().signal },
    store: clock.stopDuring(await HourStore.create(dir, log)),
    log: createLogger('monitor', 'info', { write: (line) => void told.push(line) }),
    listNodes: async () => [...strangers.slice(0, 90), ...quick, ...known],
    measure: async ({ nodeId, url }, ended) => {
      if (url === strangers[0]!.url && !isKnown(nodeId)) await once(ended, 'abort');
      return { node_id: nodeId, measured_at: clock.now() / 1000, base_latency: 0.1 };
    },
    sign: (entries) => {
      signed.push(...entries.map(({ record }) => record.node_id));
      return [{ itemHash: 'x', body: '' }];
    },
    send: async () => {},
  });
  await clock.drive(hours.runHour());
  assert.deepEqual(signed.toSorted(), idsOf([...known, ...quick]));
  const line = told.map((one) => JSON.parse(one)).find(({ msg }) => msg.startsWith('the hour ended'));
  assert.deepEqual([line.level, line.nodes, line.listed], [30, 90, 0]);
  await rm(dir, { recursive: true });
});
