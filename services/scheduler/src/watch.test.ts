import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import { nodeIdOf, sha256Hex } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import { CoreStep } from './core-step.ts';
import { INSTANCE } from './testing/core.ts';
import type { Node, View } from './view.ts';
import { admitNodes, watchNetwork } from './watch.ts';

const log = createLogger('test', 'silent');
const LIST = NETWORK_LISTS_API.listNetworkMessages.path;
const step = new CoreStep({ check: async () => null, onChange: () => {}, log });

test('announcements are read page after page by cursor, so that one that is taken back meanwhile hides none', async () => {
  const asked: string[] = [];
  const pagination = { total: 2, page: 1, per_page: 1, total_pages: 2 };
  await using served = await serving((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    const isList = pathname === LIST;
    if (isList) asked.push(`${searchParams.get('page')} ${searchParams.get('cursor')}`);
    const next_cursor = isList && asked.length === 2 ? 'n' : null;
    const list = isList ? { messages: [] } : { instances: [], cursor: '5' };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...list, pagination, pagination_per_page: 100, next_cursor }));
  });
  const stop = new AbortController();
  const ignore = () => {};
  await watchNetwork(
    {
      core: new CoreClient({ url: served.url }),
      step,
      nodes: () => [],
      allowed: undefined,
      listed: new Set(),
      isKept: () => false,
      prepare: async () => void asked.push('prepared'),
      signal: stop.signal,
      log,
    },
    {
      onView: () => stop.abort(),
      onNode: ignore,
      onNodeGone: ignore,
      onInstance: ignore,
      onInstanceRemoved: ignore,
      onDisconnect: ignore,
    },
  );
  assert.deepEqual(asked, ['prepared', 'null ', 'null n']);
});

const SENDERS = ['a1', 'b2', 'c3'].map((pair) => `0x${pair.repeat(20)}`);

function announcementOf(sender: string, time: number): NetworkMessageView {
  const content = {
    url: 'http://[fd00:1::1]:4020/',
    ipv6_prefix: 'fd00:1::/64',
    capacity: { cpu: 4, memory_mib: 8192, disk_gib: 100 },
    features: [],
    version: '0.1.0',
    announced_at_ms: time * 1000,
    reason: null,
  };
  return {
    item_hash: sha256Hex(`${sender} ${time}`),
    chain: 'ETH',
    sender,
    type: 'POST',
    channel: 'net-compute',
    time,
    content: { address: sender, time, type: 'net-node', content },
    signature: '',
  };
}

test('nodes that have a place since are read, and of each what it says now', async () => {
  const [admitted, other, left] = SENDERS as [string, string, string];
  await using served = await serving((request, response) => {
    const { searchParams } = new URL(request.url!, 'http://core');
    const sender = searchParams.get('addresses');
    // The last one takes its word back while the others are read.
    const senders = sender === null ? SENDERS : [sender].filter((one) => one !== left);
    const messages = senders.map((one) => announcementOf(one, 1_000));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ messages, pagination_per_page: 100, next_cursor: null }));
  });
  const told: string[] = [];
  const ignore = () => {};
  await admitNodes(
    new Set([admitted, left].map(nodeIdOf)),
    {
      core: new CoreClient({ url: served.url }),
      step,
      nodes: () => [],
      allowed: undefined,
      listed: new Set(),
      isKept: () => true,
      prepare: async () => {},
      signal: new AbortController().signal,
      log,
    },
    {
      onView: ignore,
      onNode: ({ address }) => told.push(`node ${address}`),
      onNodeGone: (nodeId, instead) => told.push(`gone ${nodeId} ${instead}`),
      onInstance: ignore,
      onInstanceRemoved: ignore,
      onDisconnect: ignore,
    },
  );
  assert.ok(!told.includes(`node ${other}`));
  assert.deepEqual(told, [`node ${admitted}`, `node ${left}`, `gone ${nodeIdOf(left)} undefined`]);
});

test('a node that announces itself without end hides none of the others that hold something', async () => {
  const [flooder, honest] = SENDERS as [string, string];
  let asked = 0;
  await using served = await serving((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    response.setHeader('content-type', 'application/json');
    const pagination = { total: 2, page: 1, per_page: 100, total_pages: 1 };
    if (pathname !== LIST) {
      const instances = [flooder, honest].map((node_address, index) => ({
        ...INSTANCE,
        ...{ instance_id: `${index}`.repeat(64), node_id: nodeIdOf(node_address), node_address },
      }));
      response.end(JSON.stringify({ instances, cursor: '5', pagination, next_cursor: null }));
      return;
    }
    asked++;
    const senders = searchParams.get('addresses')?.split(',') ?? [];
    const isFlooded = senders.includes(flooder);
    const messages = senders.slice(0, 1).map((one) => announcementOf(one, 1_000));
    response.end(
      JSON.stringify({ messages, pagination_per_page: 100, next_cursor: isFlooded ? 'on' : null }),
    );
  });
  const stop = new AbortController();
  const ignore = () => {};
  const found: string[] = [];
  await watchNetwork(
    {
      core: new CoreClient({ url: served.url }),
      ...{ step, nodes: () => [], allowed: undefined, listed: new Set(), isKept: () => false },
      ...{ prepare: async () => {}, signal: stop.signal, log },
    },
    {
      onView({ nodes }) {
        found.push(...Array.from(nodes.values(), ({ address }) => address));
        stop.abort();
      },
      ...{ onNode: ignore, onNodeGone: ignore, onInstance: ignore, onInstanceRemoved: ignore },
      onDisconnect: ignore,
    },
  );
  assert.deepEqual(found.sort(), [flooder, honest]);
  assert.ok(asked <= 5, `${asked} pages`);
});

test('however much nodes have told of their instances since, their announcements are found, and nothing else is read', async () => {
  const [busy, quiet] = SENDERS as [string, string];
  const statusOf = (at: number): NetworkMessageView => ({
    ...announcementOf(busy, at),
    content: { type: 'net-instance-status', content: {} },
  });
  // Newest first: behind hundreds of statuses.
  const statuses = Array.from({ length: 450 }, (_, index) => statusOf(2_000 - index));
  let read = 0;
  const all = [...statuses, announcementOf(busy, 1_000), announcementOf(quiet, 999)];
  await using served = await serving((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    response.setHeader('content-type', 'application/json');
    const pagination = { total: 2, page: 1, per_page: 100, total_pages: 1 };
    const senders = searchParams.get('addresses')?.split(',') ?? SENDERS;
    const types = searchParams.get('contentTypes')?.split(',');
    const [from, fits] = [
      Number(searchParams.get('cursor')),
      all
        .filter(({ sender }) => senders.includes(sender))
        .filter(({ content }) => !types || types.includes((content as { type: string }).type)),
    ];
    if (pathname === LIST) read += Math.min(100, fits.length - from);
    const [messages, to] = [fits.slice(from, from + 100), from + 100];
    const list = pathname === LIST ? { messages } : { instances: [], cursor: '5' };
    const next_cursor = 'messages' in list && to < fits.length ? `${to}` : null;
    response.end(JSON.stringify({ ...list, pagination, pagination_per_page: 100, next_cursor }));
  });
  const stop = new AbortController();
  const options = {
    core: new CoreClient({ url: served.url }),
    ...{ step, nodes: () => [], listed: new Set<string>(), isKept: () => false },
    ...{ prepare: async () => {}, signal: stop.signal, log },
  };
  const ignore = () => {};
  const told: string[] = [];
  const watcher = {
    onView({ nodes }: View) {
      told.push(...Array.from(nodes.values(), ({ address }) => address));
      stop.abort();
    },
    onNode: ({ address }: Node) => void told.push(address),
    onNodeGone: (nodeId: string) => void told.push(`gone ${nodeId}`),
    ...{ onInstance: ignore, onInstanceRemoved: ignore, onDisconnect: ignore },
  };
  await watchNetwork({ ...options, allowed: new Set([busy, quiet]) }, watcher);
  assert.deepEqual([told.sort(), read], [[busy, quiet], 2]);
  // Nor has it left since it was admitted.
  const { signal } = new AbortController();
  await admitNodes(new Set([nodeIdOf(busy)]), { ...options, signal, allowed: undefined }, watcher);
  assert.deepEqual(told, [busy, quiet, busy]);
});
