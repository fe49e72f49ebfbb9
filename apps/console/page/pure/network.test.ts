import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SCORE_CODES, SCORES_AGE_MAX_MS } from '@skerry/protocol';
import type { ComputeScore, SchedulerNode, ScoresMessage, WholeMessage } from '../data/answers.ts';
import { namedIn } from './named.ts';
import { meaningOfCode, mergeNodes, phasesText, placeOfNodes, roomAt, roomOf } from './nodes.ts';
import { countingScores } from './scores/counting.ts';
import { findFalls } from './scores/falls.ts';
import { timelineOf } from './timeline.ts';
import { findProblems, wellness } from './verdict.ts';

const size = (cpu: number) => ({ cpu, memory_mib: cpu * 1_024, disk_gib: cpu * 10 });

const node = (id: string, more: Partial<SchedulerNode> = {}): SchedulerNode => ({
  ...{ node_id: id, url: `http://${id}`, ipv6: null, address: '0x1', version: '1', features: [] },
  ...{ capacity: size(8), limits: size(4), used: size(1), free: size(3), instances: 1, healthy: true },
  ...{ reason: null, leaving: null, wrong_since_ms: null, trust: 'listed', score: null, weight: 1 },
  announced_at: 0,
  ...more,
});

/** Scores of compute nodes that a monitor published. @param time Unix seconds */
const published = (
  time: number,
  scores: Record<string, number>,
  { sender = '0x1', hours = 9, hour_seconds = 3_600 } = {},
): ScoresMessage => ({
  ...{ item_hash: `h${time}`, sender, time },
  content: {
    content: {
      ...{ measured_at: null, settings: { hour_seconds } },
      scores: {
        odd: [],
        ccn: [],
        crn: Object.entries(scores).map(([node_id, total_score]) => ({
          ...{ node_id, total_score, decentralization: 1, status: '', codes: [] },
          measurements: {
            ...{ total_nodes: 1, nodes_with_identical_asn: 1, record_count: hours, total_score },
          },
        })),
      },
    },
  },
});

const scored = (id: string, total: number): ComputeScore => ({
  ...{ node_id: id, total_score: total, decentralization: 0, status: 'active', codes: [1_006] },
  measurements: { total_nodes: 1, nodes_with_identical_asn: 1, record_count: 1, total_score: total },
});

test('a node that a scheduler uses and a monitor scored is one row', () => {
  const rows = mergeNodes({
    scheduled: [node('b'), node('c', { healthy: false, reason: { code: 'X', message: 'gone' } })],
    compute: [scored('b', 0.5), scored('a', 0.1)],
    core: [scored('d', 0.9)],
  });
  assert.deepEqual(
    rows.map(({ id, kind, isHealthy, score }) => [id, kind, isHealthy, score?.total_score]),
    [
      ['a', 'compute', null, 0.1],
      ['b', 'compute', true, 0.5],
      ['c', 'compute', false, undefined],
      ['d', 'core', null, 0.9],
    ],
  );
  assert.equal(rows[2]!.reason?.message, 'gone');
  assert.deepEqual([meaningOfCode(1_006), meaningOfCode(7)], ['dead: nothing proved it alive', 'code 7']);
  for (const code of Object.values(SCORE_CODES)) assert.doesNotMatch(meaningOfCode(code), /^code/);
});

test('room is what nodes that take machines may still give', () => {
  const { total, free } = roomOf([node('a'), node('b'), node('c', { healthy: false })]);
  assert.deepEqual([total, free], [size(8), size(6)]);
});

test('that there is no node is said only where nobody failed to answer', () => {
  const calm = { isAsking: false, hasFailed: false };
  assert.deepEqual(placeOfNodes(0, calm), { title: '0 nodes', shows: 'empty' });
  assert.deepEqual(placeOfNodes(0, { ...calm, hasFailed: true }), { title: 'Nodes', shows: 'failure' });
  assert.equal(placeOfNodes(0, { isAsking: true, hasFailed: true }).shows, 'loading');
  assert.deepEqual(placeOfNodes(1, { ...calm, hasFailed: true }), { title: '1 node', shows: 'rows' });
});

test('totals count the room of nodes that say what they have', () => {
  const rows = mergeNodes({ scheduled: [node('a'), node('b')], compute: [scored('c', 1)], core: [] });
  assert.deepEqual(
    roomAt(rows, ({ cpu }) => cpu),
    { free: 6, total: 8 },
  );
  assert.equal(
    roomAt(rows.slice(2), ({ cpu }) => cpu),
    undefined,
  );
});

describe('what is wrong in a network', () => {
  const well = {
    ...{ health: undefined, nodes: [node('a')], services: [], scheduler: undefined },
    ...{ scores: [], scoresMs: 0, peers: [], chains: [] },
  };
  const service = {
    ...{
      id: 1,
      name: 'gateway',
      permalink: 'service-gateway',
      group_id: 3,
      online_24_hours: 1,
      online_7_days: 1,
      latency: 1,
    },
    ...{ last_success: '2026-01-02T03:04:05.000Z', last_error: null, issue: 'answered 503' },
  };

  test('nothing, where all is well', () => {
    const health = { status: 'ok', reason: null, since_ms: null, version: '1', checks: {} };
    assert.deepEqual(findProblems({ ...well, health, services: [{ ...service, online: true }] }), []);
  });

  test('a check that fails, a service that is down, a node that takes nothing or leaves, and since when', () => {
    const checks = {
      disk: { status: 'degraded', reason: 'full', since_ms: 7 },
      clock: { status: 'ok', reason: null, since_ms: null },
    };
    const problems = findProblems({
      ...well,
      health: { status: 'degraded', reason: null, since_ms: 7, version: '1', checks },
      services: [{ ...service, online: false }],
      nodes: [
        node('a', { leaving: { code: 'X', message: 'draining' }, wrong_since_ms: 8 }),
        node('b', { healthy: false }),
      ],
      scheduler: {
        ...{ status: 'degraded', reasons: ['no node'], problems: [{ message: 'no node', since_ms: 9 }] },
        instances: { total: 1, placed: 0, waiting: 1, leaving: 0 },
      },
      peers: [
        {
          ...{ name: 'http://b', address: null, state: 'failing', failure: 'UPSTREAM_UNAVAILABLE' },
          ...{ messages: null, taken: 0, given: 0, synced_ms: 10 },
        },
        {
          ...{ name: 'http://c', address: null, state: 'stalled', failure: null },
          ...{ messages: 9, taken: 0, given: 0, synced_ms: null },
        },
      ],
      chains: [
        {
          ...{ network: 'ethereum', chain_id: 1, head: 9, finalized: 9, indexed: 2, lag: 7 },
          ...{ state: 'stalled', halt: null, progress_at: 11, calls: 1 },
        },
      ],
    });
    assert.deepEqual(
      problems.map(({ subject, why, sinceMs }) => [subject, why, sinceMs]),
      [
        ['core node, disk', 'full', 7],
        ['gateway', 'answered 503', Date.parse('2026-01-02T03:04:05Z')],
        ['scheduler', 'no node', 9],
        ['compute node', 'draining', 8],
        ['compute node', 'gets no new machines', null],
        ['peer http://b', 'does not keep in step (UPSTREAM_UNAVAILABLE)', 10],
        ['peer http://c', 'does not bring what it says to have', null],
        ['chain ethereum', 'its archives and events are not read on: stalled, 7 blocks behind', 11_000],
      ],
    );
  });

  test('a score that fell, since the first that is low; not one that moves a little, or was never high', () => {
    const scores = [
      // Published last, and of few hours: what another monitor measured for long counts.
      published(55, { low: 0.9, covered: 0.9 }, { sender: '0x2', hours: 3 }),
      published(50, { low: 0.3, steady: 0.8, small: 0.01, back: 0.9 }),
      published(40, { low: 0.2, steady: 0.9, small: 0.05, back: 0.1 }),
      published(30, { low: 0.8, steady: 0.9, small: 0.09, back: 0.9, gone: 0.7, covered: 0.9 }),
      published(20, { low: 0.1, gone: 0.6 }),
    ];
    assert.deepEqual(findFalls(scores, 60_000), [
      { node: 'low', kind: 'compute', from: 0.8, to: 0.3, sinceMs: 40_000 },
      { node: 'gone', kind: 'compute', from: 0.7, to: null, sinceMs: 40_000 },
    ]);
    assert.deepEqual(findFalls([], 60_000), []);
    assert.deepEqual(
      findProblems({ ...well, scores, scoresMs: 60_000 }).map(({ why }) => why),
      ['its score fell from 0.800 to 0.300', 'is not scored any more; it had 0.700'],
    );
    // What two monitors do not score any more is told once.
    const both = ['0x1', '0x2'].flatMap((sender) => [
      published(50, {}, { sender }),
      published(40, { gone: 0.9 }, { sender }),
    ]);
    assert.equal(findFalls(both, 60_000).length, 1);
  });
});

test('of every node the score counts that follows from more hours, with the message that says it', () => {
  const long = published(50, { a: 0.9, b: 0.2, c: 0.5 }, { hours: 900 });
  const began = published(55, { a: 0.1, b: 1, d: 0.3 }, { sender: '0x2', hours: 3 });
  const before = published(40, { e: 1 }, { hours: 899 });
  const { core, compute, messages } = countingScores([began, long, before], 60_000);
  assert.deepEqual(core, []);
  const told = compute.map(({ node_id: id, total_score: total }) => [id, total, messages.get(id)!.sender]);
  assert.deepEqual(told.toSorted(), [
    ['a', 0.9, '0x1'],
    ['b', 0.2, '0x1'],
    ['c', 0.5, '0x1'],
    ['d', 0.3, '0x2'],
  ]);
  // Too old to count, of how many hours it ever was.
  const later = 55_000 + SCORES_AGE_MAX_MS;
  const { compute: now } = countingScores([began, long], later);
  assert.deepEqual(now.map(({ node_id: id, total_score: total }) => [id, total]).toSorted(), [
    ['a', 0.1],
    ['b', 1],
    ['c', 0.5],
    ['d', 0.3],
  ]);
  // Of more hours, which are shorter.
  const short = published(58, { a: 0.1 }, { sender: '0x3', hours: 9_000, hour_seconds: 60 });
  const { messages: measured } = countingScores([short, long], 60_000);
  assert.equal(measured.get('a')!.sender, '0x1');
});

test("a machine's history, newest first, in words", () => {
  const told = (type: string, content: unknown, time = 1): WholeMessage => ({
    ...{ item_hash: 'h', type, chain: 'ETH', sender: '0x1', signature: '0x', time, channel: null },
    ...{ item_type: 'inline', item_content: null, shared: null, content },
  });
  const post = (type: string, content: unknown) => told('POST', { type, content });
  const steps = timelineOf(
    [
      told('INSTANCE', { name: 'a' }, 1),
      post('net-instance-status', { phase: 'failed', reason: { message: 'no disk' }, observed_at_ms: 5_000 }),
      post('net-allocation', { node_id: 'n', ipv6: 'fd00::1', decided_at_ms: 3_000 }),
      post('net-allocation', { node_id: null, reason: { message: 'no room' }, decided_at_ms: 2_000 }),
      post('another', null),
      told('POST', 'no object', 0),
      told('INSTANCE_UPDATE', { instance_id: 'i', time: 1, name: 'b', firewall: {} }, -1),
    ],
    undefined,
  );
  assert.deepEqual(
    steps.map(({ what, why, node: at, atMs }) => [what, why, at, atMs]),
    [
      ['failed', 'no disk', null, 5_000],
      ['placed', 'fd00::1', 'n', 3_000],
      ['no node', 'no room', null, 2_000],
      ['asked for', null, null, 1_000],
      ['another', null, null, 1_000],
      ['POST', null, null, 0],
      ['its owner: changed it', 'name, firewall', null, -1_000],
    ],
  );
});

test('a status counts by a node that a believed scheduler gave the machine to, an allocation by such a scheduler', () => {
  const by = (sender: string, type: string, content: object) => ({
    ...{ item_hash: 'h', sender, type: 'POST', time: 1 },
    content: { type, content },
  });
  const placed = { node_id: 'n', node_address: '0xnode', ipv6: 'fd00::1', decided_at_ms: 1_000 };
  const messages = [
    by('0xscheduler', 'net-allocation', placed),
    by('0xstranger', 'net-allocation', { ...placed, node_address: '0xother', decided_at_ms: 2_000 }),
    by('0xnode', 'net-instance-status', { phase: 'running', observed_at_ms: 3_000 }),
    by('0xother', 'net-instance-status', { phase: 'failed', observed_at_ms: 4_000 }),
  ];
  const doubts = (schedulers: readonly string[] | undefined) =>
    timelineOf(messages, schedulers).map(({ what, doubt }) => [what, doubt !== null]);
  assert.deepEqual(doubts(['0xscheduler']), [
    ['failed', true],
    ['running', false],
    ['placed', true],
    ['placed', false],
  ]);
  assert.ok(doubts([]).every(([, isDoubted]) => isDoubted));
  assert.ok(doubts(undefined).every(([, isDoubted]) => !isDoubted));
});

test('hashes that a content names, each once, however deep', () => {
  const [one, other] = ['a'.repeat(64), 'b'.repeat(64)];
  assert.deepEqual(namedIn({ x: one, y: [{ z: other }, one, `${one}0`], w: null }), [one, other]);
  assert.deepEqual(
    namedIn(Array.from({ length: 50 }, (_, at) => at.toString(16).padStart(64, '0'))).length,
    20,
  );
});

test('a network is called well only where all that tell of it were heard', () => {
  const heard = { ofCore: 0, ofServices: 0 };
  assert.deepEqual(wellness(0, heard), { isWell: true, title: 'The network is well.' });
  assert.match(wellness(0, { ...heard, ofCore: 1 }).title, /^The core node does not answer/);
  assert.match(wellness(0, { ...heard, ofServices: 1 }).title, /^A service does not answer/);
  assert.deepEqual(wellness(1, { ...heard, ofCore: 1 }), { isWell: false, title: 'One thing is wrong.' });
});

test('machines that are not listed are not counted as if they did not run', () => {
  assert.equal(phasesText(['running', 'failed', 'running'], 3), '2 running, 1 failed');
  assert.equal(phasesText(['running', 'stopped'], 5_000), '1 of the newest 2 running');
  assert.equal(phasesText([], 0), '0 running');
});
