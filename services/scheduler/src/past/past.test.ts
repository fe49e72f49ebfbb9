import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { call } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { type AllocationContent, NETWORK_CHANNEL, NETWORK_POST } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { EVENTS_API } from '@skerry/protocol/api/core/events';
import { SYNC_API, type SyncStatusView } from '@skerry/protocol/api/core/sync';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { schedulerService } from '../index.ts';
import { Departures } from '../planning/departures.ts';
import { answersOf, IN_STEP, send } from '../testing/core.ts';
import { createKey, nodeServer, serve } from '../testing/nodes.ts';
import { departuresOf } from './departures.ts';
import { movesOf, readAllocation } from './moves.ts';

const MINUTE_MS = 60_000;
const GRACE_MS = 15 * MINUTE_MS;
const log = createLogger('test', 'silent');
const FETCHING: SyncStatusView = {
  ...{ ...IN_STEP, state: 'syncing', behind: 2 },
  peers: IN_STEP.peers.map((peer) => ({ ...peer, state: 'syncing' })),
};

/** @param code why it left the node before */
function placed(instance: string, node: string | null, atMs: number, code?: string): AllocationContent {
  return {
    ...{ instance_id: instance.repeat(64), node_id: node, node_address: node && `0x${node}` },
    ...{ ipv6: node === null ? '' : 'fd00::1', decided_at_ms: atMs },
    reason: code === undefined ? null : { code, message: code },
  };
}

/** A node that fell silent twice, and got something new in between. */
const fellTwice = (node: string, other: string, nowMs: number) => [
  placed('a', node, nowMs - 100 * MINUTE_MS),
  placed('b', node, nowMs - 100 * MINUTE_MS),
  placed('a', other, nowMs - 80 * MINUTE_MS, 'NODE_DEAD'),
  placed('b', other, nowMs - 80 * MINUTE_MS + 1, 'NODE_DEAD'),
  placed('c', node, nowMs - 60 * MINUTE_MS),
  placed('c', other, nowMs - 40 * MINUTE_MS, 'NODE_DEAD'),
];

test('placements tell what a scheduler that was there has seen', () => {
  const nowMs = 10_000 * MINUTE_MS;
  const told = fellTwice('1', '2', nowMs);
  const before = new Departures({ isListed: () => false, graceMs: GRACE_MS, log });
  for (const atMs of [nowMs - 80 * MINUTE_MS, nowMs - 80 * MINUTE_MS + 1]) before.fellSilent('1', atMs);
  before.isHeldBack('1', nowMs - 60 * MINUTE_MS);
  before.fellSilent('1', nowMs - 40 * MINUTE_MS);
  // In whatever order they come.
  for (const some of [told, told.toReversed()])
    assert.deepEqual(
      departuresOf(
        movesOf(some, () => true),
        GRACE_MS,
      ),
      before.list(),
    );
});

test('who sends its instances away is held back, unless its operator is the scheduler’s; who is full is not', () => {
  const told = [
    placed('a', '1', 1),
    placed('a', '2', 2, 'NODE_DRAINING'),
    placed('b', '3', 1),
    placed('b', '2', 2),
  ];
  const nodesOf = (counts: boolean) => [
    ...departuresOf(
      movesOf(told, () => counts),
      GRACE_MS,
    ).keys(),
  ];
  assert.deepEqual([nodesOf(true), nodesOf(false)], [['1'], []]);
});

test('of what a scheduler saw itself it knows more', () => {
  const nowMs = 10_000 * MINUTE_MS;
  const departures = new Departures({ isListed: () => false, graceMs: GRACE_MS, log });
  departures.fellSilent('1', nowMs - 45 * MINUTE_MS);
  const seen = new Map(departures.list());
  const told = departuresOf(
    movesOf(fellTwice('1', '2', nowMs), () => true),
    GRACE_MS,
  );
  assert.deepEqual(departures.learn(told, nowMs), []);
  assert.deepEqual(departures.list(), seen);
  // What is long ago counts no more.
  assert.deepEqual(departures.learn(told, nowMs + 600 * MINUTE_MS), []);
});

/** A scheduler that begins on another server, and a core node that tells of a node which fell silent twice, unless it was just restored. */
async function startAnew(stack: AsyncDisposableStack, isRestored: boolean) {
  const state = { isRestored, asked: 0 };
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-scheduler-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const key = createKey(1);
  const node = stack.use(await serve(nodeServer(key)));
  const announcement = {
    ...{ item_hash: 'b'.repeat(64), chain: 'ETH', sender: key.address, type: 'POST', time: 1 },
    ...{ channel: NETWORK_CHANNEL.compute, signature: '' },
    content: {
      type: NETWORK_POST.node,
      content: {
        ...{ url: node.url, ipv6_prefix: 'fd00:1:2:3::/64', features: [], version: '1', reason: null },
        ...{ capacity: { cpu: 4, memory_mib: 4_096, disk_gib: 40 }, announced_at_ms: 1_000 },
      },
    },
  };
  const answers = answersOf([], [announcement]);
  const posts = fellTwice(key.nodeId, 'f'.repeat(64), Date.now()).map((content) => ({
    ...{ address: '0x1', item_hash: 'c'.repeat(64), time: content.decided_at_ms / 1_000 },
    content: {
      ...content,
      node_address: content.node_id === key.nodeId ? key.address : `0x${'f'.repeat(40)}`,
    },
  }));
  const core = stack.use(
    await serve((request, response) => {
      const { pathname, searchParams } = new URL(request.url!, 'http://core');
      if (pathname === EVENTS_API.listEvents.path)
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      else if (pathname === SYNC_API.getSyncStatus.path)
        send(response, state.isRestored ? FETCHING : IN_STEP);
      else if (pathname === NETWORK_LISTS_API.listNetworkPosts.path) {
        const isMeant = searchParams.get('types') === NETWORK_POST.allocation && !state.isRestored;
        // What a scheduler learns of the past is asked for in larger pages than the date of the last decision.
        if (searchParams.get('pagination') === '500') state.asked++;
        const page = { pagination_per_page: 500, next_cursor: null };
        send(response, { ...page, posts: isMeant ? posts.toReversed() : [] });
      } else send(response, answers[pathname]);
    }),
  );
  const config = {
    ...readConfig(schedulerService.config, {}),
    ...{ port: 0, coreUrl: core.url, dataDir, nodes: [key.address], probeIntervalSeconds: 1 },
  };
  const { urls } = stack.use(
    await schedulerService.start(config, { log, signal: new AbortController().signal }),
  );
  return Object.assign(state, { url: urls[0]! });
}

const isHeldBack = async ({ url }: { readonly url: string }) => {
  const { nodes } = await call(url, SCHEDULER_API.listNodes, {}).catch(() => ({ nodes: [] }));
  return nodes[0]?.reason?.code === 'NODE_LEFT_OFTEN';
};

test('what is dated ahead, after a clock was, is of when it was signed', () => {
  const [signedAt, dayMs] = [1_000_000, 86_400_000];
  const dateOf = (atMs: number, time?: number) =>
    readAllocation(placed('a', null, atMs), time)?.decided_at_ms;
  assert.equal(dateOf(signedAt * 1_000 + dayMs, signedAt), signedAt * 1_000 + 999);
  for (const atMs of [signedAt * 1_000 + 500, signedAt * 1_000 - dayMs])
    assert.equal(dateOf(atMs, signedAt), atMs);
});

test('a scheduler that begins on another server holds back whom the one before it held back', async () => {
  await using stack = new AsyncDisposableStack();
  const scheduler = await startAnew(stack, false);
  await until('the node is held back', () => isHeldBack(scheduler));
});

test('so does one whose core node was restored and knew nothing of it yet', async () => {
  await using stack = new AsyncDisposableStack();
  const scheduler = await startAnew(stack, true);
  await until('it knows nothing, and decides nothing', async () => {
    const { reasons } = await call(scheduler.url, SCHEDULER_API.getSchedulerStatus, {});
    return scheduler.asked > 0 && reasons.some((one) => one.startsWith('nothing is decided for now'));
  });
  scheduler.isRestored = false;
  await until('the node is held back', () => isHeldBack(scheduler));
});
