import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLogger, type HttpServer, rateLimitsOf, readConfig, Since } from '@skerry/kit';
import { checkOperation, testContract, testRate } from '@skerry/kit/testing';
import { AppError, nodeIdOf, sha256Hex } from '@skerry/protocol';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import { type ExplanationView, type NodeView, SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import type { Static } from '@skerry/protocol/type';
import { schedulerConfig } from '../config.ts';
import type { Snapshot } from '../controller.ts';
import { DecisionLog } from '../decision-log.ts';
import { Planner } from '../planning/planner.ts';
import { standingOf } from '../planning/testing/setup.ts';
import { applyInstance, applyNode, createView, type Instance, type Node } from '../view.ts';
import { createApi } from './api.ts';
import { planText } from './wire.ts';

const ADDRESSES = ['1', '2'].map((digit) => `0x${digit.repeat(40)}`);
const [first, second] = ADDRESSES.map(
  (address, index): Node => ({
    nodeId: nodeIdOf(address),
    address,
    url: `http://node${index}.test`,
    ipv6Prefix: `2001:db8:1:${index + 1}::/64`,
    capacity: { cpu: 4, memoryMib: 4096, diskGib: 100 },
    features: ['kvm'],
    version: '0.1.0',
    reason: index === 0 ? null : { code: 'HOST_NOT_READY', message: 'no rights to make taps' },
    announcedAtMs: 1_000_000,
    itemHash: sha256Hex(address),
  }),
) as [Node, Node];

const PLACED = '5330dcefe1857bcd97b7b7f24d1420a7d46232d53f27be280c8a7071d88bd84e';
const WAITING = sha256Hex('waiting');
const instanceOf = (instanceId: string, memoryMib: number): Instance => ({
  instanceId,
  needs: { cpu: 1, memoryMib, diskGib: 4 },
  createdAt: 0,
  nodeId: null,
  nodeAddress: null,
  ipv6: '',
  reason: null,
});

function snapshotOf(nodes: Node[], instances: Instance[]): Snapshot {
  const view = createView();
  const planner = new Planner({ cpuOvercommit: 2, manages: () => true });
  for (const node of nodes) {
    applyNode(view, node);
    planner.setNode(node, standingOf(node));
  }
  for (const instance of instances) {
    applyInstance(view, instance);
    planner.setInstance(instance);
  }
  const decisions = new DecisionLog();
  const checkedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5);
  for (const decision of planner.run()) decisions.add({ ...decision, decidedAtMs: checkedAtMs });
  const wrongSince = (nodeId: string) => (nodeId === second.nodeId ? 9 : null);
  return { view, planner, decisions, wrongSince, checkedAtMs };
}

const standpoint = { address: ADDRESSES[0]!, role: 'leader', sinceMs: 7, canLead: true } as const;
let nowMs = 10;
let scoresOutdatedMs: number | null = null;
let lag: string | null = null;
const since = new Since(() => nowMs);
let app: HttpServer;
let snapshot: Snapshot | undefined;
let trouble: { unconfirmed: number; failure: string | null } = { unconfirmed: 0, failure: null };
before(async () => {
  const source = {
    snapshot: () => {
      if (!snapshot)
        throw new AppError('UPSTREAM_UNAVAILABLE', 'the scheduler has not read the core node yet');
      return snapshot;
    },
    status: () => ({
      snapshot,
      coreFailure: null,
      lag,
      isCutOff: false,
      scoresOutdatedMs,
      trouble,
      address: ADDRESSES[0]!,
      standpoint,
      peers: [{ url: 'http://other.test', seenAtMs: undefined, standpoint: undefined }],
      since,
    }),
    periodSeconds: 10,
  };
  const limits = rateLimitsOf(readConfig(schedulerConfig, {}));
  app = await createApi(source, limits, createLogger('test', 'silent'));
});
after(() => app.close());

async function get(url: string) {
  const response = await app.inject({ url, headers: { origin: 'https://page.test' } });
  assert.equal(response.headers['access-control-allow-origin'], '*');
  return { status: response.statusCode, body: response.json() };
}

const period = { start_timestamp: '2026-01-02T03:04:05.000Z', duration_seconds: 10 };
const nodeRef = {
  node_id: first.nodeId,
  url: 'http://node0.test',
  ipv6: '2001:db8:1:1::/64',
  supports_ipv6: true,
};
const lacks = 'needs 9999 MiB of memory, the only node has 3584 MiB free';

describe('with a plan', () => {
  before(() => {
    snapshot = snapshotOf([first, second], [instanceOf(PLACED, 512), instanceOf(WAITING, 9999)]);
  });

  test('GET /api/v0/plan', async () => {
    const { status, body } = await get('/api/v0/plan');
    assert.equal(status, 200);
    const lists = { persistent_vms: [], on_demand_vms: [], jobs: [] };
    assert.deepEqual(body, {
      period,
      plan: {
        [first.nodeId]: { ...lists, instances: [PLACED] },
        [second.nodeId]: { ...lists, instances: [] },
      },
      waiting: [{ vm_hash: WAITING, reason: { code: 'NO_CAPACITY', message: lacks } }],
    });
  });

  test('GET /api/v0/nodes', async () => {
    const { body } = await get('/api/v0/nodes');
    const nodes = new Map(body.nodes.map((node: { node_id: string }) => [node.node_id, node]));
    assert.deepEqual([...nodes.keys()], [first.nodeId, second.nodeId].sort());
    assert.deepEqual(nodes.get(first.nodeId), {
      ...nodeRef,
      address: first.address,
      version: '0.1.0',
      features: ['kvm'],
      capacity: { cpu: 4, memory_mib: 4096, disk_gib: 100 },
      limits: { cpu: 8, memory_mib: 4096, disk_gib: 100 },
      used: { cpu: 1, memory_mib: 512, disk_gib: 4 },
      free: { cpu: 7, memory_mib: 3584, disk_gib: 96 },
      instances: 1,
      healthy: true,
      reason: null,
      leaving: null,
      wrong_since_ms: null,
      trust: 'listed',
      score: null,
      weight: 0.4375,
      announced_at: 1000,
    });
    const other = nodes.get(second.nodeId) as {
      healthy: boolean;
      reason: { code: string };
      wrong_since_ms: number;
    };
    assert.deepEqual([other.healthy, other.reason.code, other.wrong_since_ms], [false, 'HOST_NOT_READY', 9]);
  });

  test('GET /api/v0/allocation/{vm_hash}', async () => {
    const { status, body } = await get(`/api/v0/allocation/${PLACED.toUpperCase()}`);
    assert.equal(status, 200);
    assert.deepEqual(body, {
      vm_hash: PLACED,
      vm_type: 'instance',
      vm_ipv6: '2001:db8:1:1:3:5330:dcef:e181',
      period,
      node: nodeRef,
      reason: null,
    });
    const waiting = await get(`/api/v0/allocation/${WAITING}`);
    assert.deepEqual([waiting.status, waiting.body.code], [404, 'ALLOCATION_NOT_FOUND']);
    assert.deepEqual(waiting.body.details, { reason: { code: 'NO_CAPACITY', message: lacks } });
    const unknown = await get(`/api/v0/allocation/${'0'.repeat(64)}`);
    assert.deepEqual([unknown.status, unknown.body.code], [404, 'ALLOCATION_NOT_FOUND']);
    const malformed = await get('/api/v0/allocation/xyz');
    assert.deepEqual([malformed.status, malformed.body.code], [400, 'INVALID_HASH']);
  });

  test('GET /api/v0/explain/{vm_hash}', async () => {
    const { status, body } = await get(`/api/v0/explain/${PLACED}?candidates=1`);
    assert.equal(status, 200);
    assert.deepEqual(
      [body.node_id, body.verdict.code, body.nodes],
      [first.nodeId, 'STAYS', { FITS: 1, HOST_NOT_READY: 1 }],
    );
    assert.deepEqual(body.decisions, [
      {
        decided_at: period.start_timestamp,
        kind: 'placed',
        from: null,
        node_id: first.nodeId,
        ipv6: '2001:db8:1:1:3:5330:dcef:e181',
        reason: null,
      },
    ]);
    assert.deepEqual(body.candidates, [
      {
        node_id: first.nodeId,
        has_room: true,
        weight: 0.4375,
        free_share: 0.875,
        trust: 'listed',
        score: null,
        free: { cpu: 7, memory_mib: 3584, disk_gib: 96 },
        against: null,
      },
    ]);
    const waiting = (await get(`/api/v0/explain/${WAITING}`)).body;
    assert.deepEqual(waiting.verdict, { code: 'WAITS', message: lacks });
    assert.deepEqual(waiting.nodes, { NO_CAPACITY: 1, HOST_NOT_READY: 1 });
    assert.equal((await get(`/api/v0/explain/${'0'.repeat(64)}`)).body.code, 'ALLOCATION_NOT_FOUND');
    assert.equal((await get(`/api/v0/explain/${PLACED}?candidates=101`)).body.code, 'INVALID_PARAMETERS');
  });

  test('GET /api/v0/simulate', async () => {
    const fitting = await get('/api/v0/simulate?vcpus=7&memory=3584&disk=96');
    assert.equal(fitting.status, 200);
    assert.deepEqual(fitting.body, { schedulable: true, reasons: [], node_id: first.nodeId });
    const tooLarge = await get('/api/v0/simulate?vcpus=1&memory=9999&disk=1');
    assert.equal(tooLarge.status, 503);
    assert.deepEqual(tooLarge.body, { schedulable: false, reasons: [lacks], code: 'NO_CAPACITY' });
    for (const query of ['', '?vcpus=1&memory=1', '?vcpus=0&memory=1&disk=1', '?vcpus=a&memory=1&disk=1']) {
      const refused = await get(`/api/v0/simulate${query}`);
      assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_PARAMETERS'], query);
    }
  });

  test('GET /status says what is not in order', async () => {
    trouble = { unconfirmed: 2, failure: null };
    snapshot = snapshotOf([first, second], [instanceOf(PLACED, 512), instanceOf(WAITING, 4_000)]);
    const { status, body } = await get('/status');
    assert.equal(status, 200);
    const { problems, ...rest } = body;
    assert.deepEqual(
      problems.map(({ code, since_ms }: { code: string; since_ms: number }) => [code, since_ms]),
      [
        ['WITHOUT_EFFECT', 10],
        ['NODES_UNUSABLE', 10],
        ['INSTANCES_WAITING', 10],
      ],
    );
    assert.deepEqual(rest, {
      status: 'degraded',
      reasons: [
        `the core node stored 2 decisions without effect; it may not trust this scheduler, ${ADDRESSES[0]}`,
        '1 of 2 compute nodes can accept no instance (see /api/v0/nodes)',
        '1 of 2 instances have no node (see /api/v0/plan)',
      ],
      address: ADDRESSES[0],
      leadership: {
        role: 'leader',
        since_ms: 7,
        can_lead: true,
        peers: [{ url: 'http://other.test', role: null, address: null, seen_at_ms: null }],
      },
      nodes: { total: 2, healthy: 1 },
      instances: { total: 2, placed: 1, waiting: 1, leaving: 0 },
    });
    nowMs = 20;
    trouble = { unconfirmed: 0, failure: 'refused' };
    assert.deepEqual(
      (await get('/status')).body.problems.map(({ since_ms }: { since_ms: number }) => since_ms),
      [20, 10, 10],
    );
    trouble = { unconfirmed: 0, failure: null };
    snapshot = snapshotOf([first], [instanceOf(PLACED, 512)]);
    scoresOutdatedMs = Date.parse('2026-05-01T00:00:00Z');
    assert.deepEqual((await get('/status')).body.reasons, [
      'no node counts as measured, and programs run as before: the newest scores are of measurements up to 2026-05-01T00:00:00.000Z, older than 7 days',
    ]);
    scoresOutdatedMs = null;
    lag = 'the core node has not reached any of its peers yet';
    assert.deepEqual((await get('/status')).body.reasons, [`nothing is decided for now: ${lag}`]);
    lag = null;
    assert.equal((await get('/status')).body.status, 'ok');
    // Larger than any node is: whoever asks for it says nothing of the network.
    snapshot = snapshotOf([first], [instanceOf(PLACED, 512), instanceOf(WAITING, 4_097)]);
    const { body: large } = await get('/status');
    assert.deepEqual([large.status, large.instances.waiting], ['ok', 1]);
    snapshot = snapshotOf([first, { ...second, reason: null, ipv6Prefix: first.ipv6Prefix }], []);
    assert.deepEqual((await get('/status')).body.reasons, [
      'more than one compute node announces 2001:db8:1:1::/64',
    ]);
  });
});

test('the examples of the contract are what is answered of such a network', async () => {
  const { capacity, ...node } = (SCHEDULER_EXAMPLES.listNodes!.answer as { nodes: [NodeView] }).nodes[0];
  const { vm_hash, needs, created_at, vm_ipv6 } = SCHEDULER_EXAMPLES.explainPlacement!.answer as Static<
    typeof ExplanationView
  >;
  const { waiting } = SCHEDULER_EXAMPLES.getPlan!.answer as {
    readonly waiting: readonly [{ readonly vm_hash: string }];
  };
  const needsOf = ({ cpu, memory_mib, disk_gib }: typeof needs) => ({
    cpu,
    memoryMib: memory_mib,
    diskGib: disk_gib,
  });
  const placed = { nodeId: node.node_id, nodeAddress: node.address, ipv6: vm_ipv6! };
  const announced: Node = {
    ...first,
    ...{ nodeId: node.node_id, address: node.address, url: node.url!, ipv6Prefix: node.ipv6 },
    capacity: needsOf(capacity),
    announcedAtMs: node.announced_at * 1000,
  };
  snapshot = snapshotOf(
    [announced],
    [
      { ...instanceOf(vm_hash, 0), needs: needsOf(needs), createdAt: created_at, ...placed },
      instanceOf(waiting[0].vm_hash, 9_999),
    ],
  );
  const ids = ['getPlan', 'listNodes', 'getAllocation', 'explainPlacement', 'simulatePlacement'] as const;
  for (const id of ids) {
    const example = SCHEDULER_EXAMPLES[id]!;
    const { payload } = await checkOperation((sent) => app.inject(sent), SCHEDULER_API[id], example);
    assert.deepEqual(JSON.parse(payload), example.answer, id);
  }
});

test('an instance that nothing was decided of yet has no node yet, and no reason', async () => {
  const now = snapshotOf([first], [instanceOf(PLACED, 512)]);
  now.planner.setInstance(instanceOf(WAITING, 512));
  snapshot = now;
  const { status, body } = await get(`/api/v0/allocation/${WAITING}`);
  assert.deepEqual(
    [status, body.error, body.details],
    [404, 'no node has been chosen yet', { reason: null }],
  );
});

test('of an instance that no node can start nobody is told that it waits for room elsewhere', async () => {
  const barred = { code: 'UNKNOWN_IMAGE', message: 'there is no image "x"' };
  const draining = { ...first, reason: { code: 'NODE_DRAINING', message: 'new disks' } };
  const free = { ...second, reason: null };
  const on = { nodeId: first.nodeId, nodeAddress: first.address, ipv6: '2001:db8:1:1:3:5330:dcef:e181' };
  snapshot = snapshotOf([draining, free], [{ ...instanceOf(PLACED, 512), ...on, barred }]);
  const { verdict, node_id } = (await get(`/api/v0/explain/${PLACED}`)).body;
  assert.deepEqual([verdict.code, node_id], ['STAYS', first.nodeId]);
  assert.match(verdict.message, /no node can start it.*there is no image "x"/);
});

test('a plan is one moment: what is decided while its text is read does not show in it', () => {
  const other = sha256Hex('other');
  const now = snapshotOf(
    [first],
    [instanceOf(PLACED, 512), instanceOf(other, 512), instanceOf(WAITING, 8_192)],
  );
  const period = { start_timestamp: '', duration_seconds: 1 };
  const whole = [...planText(now, period)].join('');
  const text = planText(now, period);
  const { value: begun } = text.next();
  now.planner.removeInstance(PLACED);
  now.planner.removeInstance(WAITING);
  now.planner.setInstance(instanceOf(sha256Hex('later'), 512));
  now.planner.run();
  assert.equal([begun, ...text].join(''), whole);
});

test('before the core node was read, there is no plan and no pretence of one', async () => {
  snapshot = undefined;
  for (const path of ['plan', 'nodes', `allocation/${PLACED}`, 'simulate?vcpus=1&memory=1&disk=1']) {
    const { status, body } = await get(`/api/v0/${path}`);
    assert.deepEqual([status, body.code, body.status], [503, 'UPSTREAM_UNAVAILABLE', 'error'], path);
  }
  const { body } = await get('/status');
  assert.deepEqual([body.status, body.reasons], ['degraded', ['the core node has not been read yet']]);
});

test('what does not exist is said so', async () => {
  const { status, body } = await get('/api/v0/elsewhere');
  assert.deepEqual([status, body.code], [404, 'ROUTE_NOT_FOUND']);
});

describe('the contract', () => {
  before(() => {
    snapshot = snapshotOf([first, second], [instanceOf(PLACED, 512), instanceOf(WAITING, 9999)]);
  });
  const requests = {
    getPlan: [{}],
    listNodes: [{}],
    getAllocation: [{ params: { vm_hash: PLACED } }],
    explainPlacement: [{ params: { vm_hash: PLACED } }, { params: { vm_hash: WAITING } }],
    simulatePlacement: [
      { query: { vcpus: 1, memory: 1, disk: 1 } },
      { query: { vcpus: 1, memory: 9999, disk: 1 } },
    ],
    getSchedulerStatus: [{}],
    getFront: [{}],
    getDocument: [{}],
    getReference: [{}],
  };
  testContract(() => app, SCHEDULER_API, requests, SCHEDULER_EXAMPLES);
  testRate(() => app, '/api/v0/plan', 100);
});
