import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { call } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { NETWORK_CHANNEL, NETWORK_POST } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { EVENTS_API } from '@skerry/protocol/api/core/events';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { schedulerService } from './index.ts';
import type { Role } from './leadership.ts';
import { answersOf, INSTANCE, send, takePost } from './testing/core.ts';
import { createKey, type Key, nodeServer, serve } from './testing/nodes.ts';

const TOLD = [NETWORK_POST.allocation, NETWORK_POST.runners];

/** A node that runs programs only. */
const announcementOf = ({ address }: Key, url: string) => ({
  ...{ item_hash: 'b'.repeat(64), chain: 'ETH', sender: address, type: 'POST', time: 1 },
  ...{ channel: NETWORK_CHANNEL.compute, signature: '' },
  content: {
    type: NETWORK_POST.node,
    content: {
      ...{ url, ipv6_prefix: '', capacity: { cpu: 0, memory_mib: 0, disk_gib: 0 } },
      ...{ features: ['program:wasm'], version: '1', announced_at_ms: 1_000 },
      reason: { code: 'HOST_NOT_READY', message: 'no KVM' },
    },
  },
});

/** A core node that has a node and an instance, and makes whoever asks how decisions were dated wait for its answer. */
async function startCore(key: Key, nodeUrl: string) {
  const answers = answersOf([INSTANCE], [announcementOf(key, nodeUrl)]);
  const told: { readonly type: string; readonly decidedAtMs: number }[] = [];
  const waiting = new Map<string, ServerResponse[]>();
  let isHolding = true;
  const NO_POSTS = { posts: [], pagination_per_page: 20 };
  const server = await serve(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    if (request.method === 'POST') {
      const { type, content } = await takePost(request, response);
      told.push({ type, decidedAtMs: Number(content.decided_at_ms) });
    } else if (pathname === EVENTS_API.listEvents.path)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    else if (
      pathname === NETWORK_LISTS_API.listNetworkPosts.path &&
      isHolding &&
      // What a scheduler learns of the past is asked for in larger pages.
      searchParams.get('pagination') === '20'
    ) {
      const type = searchParams.get('types')!;
      waiting.set(type, [...(waiting.get(type) ?? []), response]);
    } else
      send(response, pathname === NETWORK_LISTS_API.listNetworkPosts.path ? NO_POSTS : answers[pathname]);
  });
  return {
    ...server,
    /** The posts that were sent. */
    told,
    /** Types of the posts whose dates are asked for. */
    asked: () => [...waiting.keys()].toSorted(),
    release() {
      isHolding = false;
      for (const response of [...waiting.values()].flat()) send(response, NO_POSTS);
    },
  };
}

/** Another scheduler. It has the role since before everybody else. */
async function startPeer() {
  const state = { role: 'standby' as Role, asked: 0 };
  const server = await serve((_, response) => {
    state.asked++;
    const { role } = state;
    const leadership = { role, since_ms: 1, can_lead: role === 'leader', peers: [] };
    const address = `0x${'f'.repeat(40)}`;
    const answer = SCHEDULER_EXAMPLES.getSchedulerStatus!.answer as object;
    response.end(JSON.stringify({ ...answer, address, leadership }));
  });
  return Object.assign(state, server);
}

test('a scheduler that another one deposes sends nothing of what it was about to say, and says it when it leads again', async () => {
  await using stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-scheduler-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const key = createKey(1);
  const node = stack.use(await serve(nodeServer(key)));
  const core = stack.use(await startCore(key, node.url));
  const peer = stack.use(await startPeer());
  const config = {
    ...readConfig(schedulerService.config, {}),
    ...{ port: 0, coreUrl: core.url, dataDir, nodes: [key.address], peers: [peer.url] },
    probeIntervalSeconds: 1,
    // However long a busy machine keeps the peer from answering, it counts.
    takeoverSeconds: 3_600,
  };
  const host = { log: createLogger('test', 'silent'), signal: new AbortController().signal };
  const { urls } = stack.use(await schedulerService.start(config, host));
  const takes = (role: Role) =>
    until(`it is ${role}`, async () => {
      const { leadership } = await call(urls[0]!, SCHEDULER_API.getSchedulerStatus, {});
      return leadership.role === role;
    });
  await takes('leader');
  await until(
    'a decision and a list wait for the dates of others',
    core.asked,
    (asked) => asked.length === 2,
  );
  peer.role = 'leader';
  await takes('standby');
  core.release();
  // What is sent all the same is sent at once.
  const seen = peer.asked;
  await until('it has looked twice who leads', () => peer.asked > seen + 1);
  assert.deepEqual(core.told, []);
  const againMs = Date.now();
  peer.role = 'standby';
  await until('both are told', () => TOLD.every((type) => core.told.some((one) => one.type === type)));
  // However late it comes: what it was about to say would be dated before it leads again.
  assert.deepEqual(
    core.told.filter(({ decidedAtMs }) => decidedAtMs < againMs),
    [],
  );
});
