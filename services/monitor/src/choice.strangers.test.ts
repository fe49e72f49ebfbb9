import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { chooseNodes, keyOf, newcomersMax, noteAnswers } from './choice.ts';
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

test('M6: strangers who let visits last keep no listed node waiting, and the log says how many the hour left out', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-monitor-'));
  const clock = new VirtualClock(START);
  const told: string[] = [];
  const signed: string[] = [];
  const known = Array.from({ length: 10 }, (_, index) => {
    const { address: _address, ...node } = announced(index + 1);
    return node;
  });
  const hours = new Hours({
    ...{ clock, hourMs: HOUR_MS, concurrency: 4, seed: 'seed', signal: new AbortController().signal },
    store: clock.stopDuring(await HourStore.create(dir, log)),
    log: createLogger('monitor', 'info', { write: (line) => void told.push(line) }),
    listNodes: async () => [...strangers.slice(0, 90), ...known],
    measure: async ({ nodeId, address }, ended) => {
      if (address !== undefined) await once(ended, 'abort');
      return { node_id: nodeId, measured_at: clock.now() / 1000, base_latency: 0.1 };
    },
    sign: (entries) => {
      signed.push(...entries.map(({ record }) => record.node_id));
      return [{ itemHash: 'x', body: '' }];
    },
    send: async () => {},
  });
  await clock.drive(hours.runHour());
  assert.deepEqual(signed.toSorted(), idsOf(known));
  const line = told.map((one) => JSON.parse(one)).find(({ msg }) => msg.startsWith('the hour ended'));
  assert.deepEqual([line.level, line.nodes, line.listed], [30, 90, 0]);
  await rm(dir, { recursive: true });
});
