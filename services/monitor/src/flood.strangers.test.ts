import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { type NodeContent, nodeIdOf } from '@skerry/protocol';
import { keyOf } from './choice.ts';
import { HourStore } from './hour-store.ts';
import { listAnnouncedNodes } from './network.ts';
import { startNode } from './testing/scene.ts';

const addressOf = (index: number) => `0x${index.toString(16).padStart(40, '0')}`;
const postOf = (index: number, url = `http://n${index}.test`) => {
  const content: NodeContent = {
    url,
    ipv6_prefix: '2a00:1::/64',
    capacity: { cpu: 1, memory_mib: 1, disk_gib: 1 },
    features: [],
    version: '1',
    announced_at_ms: 1,
    reason: null,
  };
  return { address: addressOf(index), content, item_hash: `${index}` };
};

test('who announces without end hides no node that answers, also from a monitor that starts anew', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-monitor-'));
  let [posts, isEndless] = [[postOf(1), postOf(2), postOf(3)], false];
  await using core = await startNode((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ posts, pagination_per_page: 500, next_cursor: isEndless ? 'on' : null }));
  });
  const signer = createSigner(generatePrivateKey());
  const client = new CoreClient({ url: core.url.replace(/\/$/, ''), signer });
  const { signal } = new AbortController();
  /** With what a process finds that starts now. */
  const list = async () => {
    const store = await HourStore.create(join(dir, 'hours'), createLogger('monitor', 'silent'));
    const nodes = await listAnnouncedNodes({ core: client, signal }, store);
    return { store, nodes: nodes.map(({ nodeId, url }) => [nodeId, url]) };
  };
  const rowOf = (index: number, url = `http://n${index}.test/`) => [nodeIdOf(addressOf(index)), url];
  const { store, nodes } = await list();
  assert.deepEqual(nodes, [rowOf(1), rowOf(2), rowOf(3)]);
  await store.keepAnswered(new Map([1, 2].map((index) => [keyOf('compute', nodeIdOf(addressOf(index))), 0])));
  await list();
  // One of them says meanwhile that it is somewhere else; of the other only the old word is there, behind the flood.
  [posts, isEndless] = [[postOf(9), postOf(2, 'http://moved.test')], true];
  assert.deepEqual((await list()).nodes, [rowOf(1), rowOf(2, 'http://moved.test/'), rowOf(9)]);
  // Where all is read, who is not in it has left.
  isEndless = false;
  assert.deepEqual((await list()).nodes, [rowOf(2, 'http://moved.test/'), rowOf(9)]);
  await rm(dir, { recursive: true });
});
