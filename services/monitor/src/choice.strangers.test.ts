import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseNodes, keyOf, newcomersMax, noteAnswers } from './choice.ts';
import type { MeasuredNode } from './node-list.ts';
import { windowAt } from './plan.ts';
import { VISIT_MS_MAX } from './probe/measure.ts';

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
});
