import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { call } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { type InstanceView, itemHashOf, NETWORK_CHANNEL, NETWORK_POST } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { EVENTS_API } from '@skerry/protocol/api/core/events';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { schedulerService } from './index.ts';
import type { Role } from './leadership.ts';
import { createKey, type Key, nodeServer, serve } from './testing/nodes.ts';

const TOLD = [NETWORK_POST.allocation, NETWORK_POST.runners];

/** No node can start it: what is decided of it changes with nothing. */
const INSTANCE: InstanceView = {
  ...{ instance_id: 'a'.repeat(64), owner: '0x1', name: 'a', description: '', cpu: 1, memory: 512, disk: 4 },
  ...{ image: 'fedora', ipv6: '', status: 'stopped', created_at: 1, updated_at: 1, ssh_key: '' },
  ...{ firewall: { allowedPorts: [] }, desired: 'running', restart_id: null, node_id: null },
  ...{ node_address: null, phase: 'scheduled', reason: null },
};

/** A node that runs programs only. */
const announcementOf = ({ address }: Key, url: string) => ({
  ...{ item_hash: 'b'.repeat(64), chain: 'ETH', sender: address, type: 'POST', timestamp: 1 },
  ...{ channel: NETWORK_CHANNEL.compute, signature: '', signed_text: null, confirmations: [] },
  content: {
    type: NETWORK_POST.node,
    content: {
      ...{ url, ipv6_prefix: '', capacity: { cpu: 0, memory_mib: 0, disk_gib: 0 } },
      ...{ features: ['program:wasm'], version: '1', announced_at_ms: 1_000 },
      reason: { code: 'HOST_NOT_READY', message: 'no KVM' },
    },
  },
});

const trusts = (...value: string[]) => ({ value, source: 'setting' });
const INFO = {
  ...{ node_multi_addresses: [], name: 'core', version: '1', address: '0x1' },
  trust: {
    ...{ schedulers: trusts('0x1'), scoring_publishers: trusts(), credit_publishers: trusts() },
    ...{ known_core_nodes: trusts(), credit_enforcement: { value: false, source: 'setting' } },
  },
};

/** A core node that has a node and an instance, and makes whoever asks how decisions were dated wait for its answer. */
async function startCore(key: Key, nodeUrl: string) {
  const pages = { pagination: { total: 1, page: 1, per_page: 100, total_pages: 1 }, next_cursor: null };
  const answers: Readonly<Record<string, object>> = {
    [NODE_API.getInfo.path]: INFO,
    [INSTANCES_API.listInstances.path]: { instances: [INSTANCE], cursor: '5', ...pages },
    [MESSAGES_API.listMessages.path]: { messages: [announcementOf(key, nodeUrl)], ...pages },
  };
  const told: { readonly type: string; readonly decidedAtMs: number }[] = [];
  const waiting = new Map<string, ServerResponse[]>();
  let isHolding = true;
  const send = (response: ServerResponse, answer: object | undefined) =>
    response
      .writeHead(answer ? 200 : 404, { 'content-type': 'application/json' })
      .end(JSON.stringify(answer ?? {}));
  const NO_POSTS = { posts: [], pagination_per_page: 20 };
  const server = await serve(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    if (request.method === 'POST') {
      const { message, address } = JSON.parse(await text(request));
      const { type, content } = message.content;
      told.push({ type, decidedAtMs: content.decided_at_ms });
      const itemHash = itemHashOf(message.chain, address, JSON.stringify(message));
      send(response, { item_hash: itemHash, status: 'success' });
    } else if (pathname === EVENTS_API.listEvents.path)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    else if (pathname === NETWORK_LISTS_API.listNetworkPosts.path && isHolding) {
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
