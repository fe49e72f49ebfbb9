import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { decode } from '@ipld/dag-pb';
import { findFreePort, ownAddress } from '@skerry/database/testing';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { Dag } from '../store/ipfs/testing/dags.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';
import { ipfsPeerConfig } from './config.ts';
import { startIpfsPeer } from './start.ts';
import { addFile } from './testing/add-file.ts';
import { ForeignPeer } from './testing/foreign.ts';

const DHT = '/test/kad/1.0.0';
const log = createLogger('ipfs', 'silent');

/** A core node with its IPFS peer. */
async function startPair(stack: AsyncDisposableStack, bootstrap: string) {
  const host = ownAddress();
  const port = await findFreePort(host);
  const core = stack.use(await createTestCore({ ipfs: { gateways: [`http://${host}:${port}`] } }));
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-ipfs-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const config = {
    ...readConfig(ipfsPeerConfig, {}),
    coreUrl: await core.listen(),
    dataDir,
    host,
    port,
    listen: ['/ip4/127.0.0.1/tcp/0'],
    bootstrap: [bootstrap],
    dhtProtocol: DHT,
    roundSeconds: 1,
    allowPrivate: true,
  };
  const start = () => startIpfsPeer(config, { log, signal: new AbortController().signal });
  return { core, start };
}

const store = (core: TestCore, cid: string) =>
  core.send(signers.alice, {
    type: 'STORE',
    channel: 'test',
    content: { item_type: 'ipfs', item_hash: cid },
  });

test('other IPFS software finds by the DHT what is pinned here, and what it has is fetched; without the peer the node goes on', async () => {
  await using stack = new AsyncDisposableStack();
  const first = stack.use(await ForeignPeer.start(DHT));
  const other = stack.use(await ForeignPeer.start(DHT));
  await other.ask('dial', first.address);
  const { core, start } = await startPair(stack, first.address);
  const peer = await start();

  // Of ours to them. They know only somebody who knows somebody.
  const pinned = randomBytes(700_000);
  const cid = await addFile(core, pinned);
  assert.equal((await store(core, cid)).status, 200);
  const root = await until(
    'the file is announced and fetched',
    () => other.ask('get', cid).catch(() => ''),
    (base64) => base64 !== '',
  );
  const leaves = decode(Buffer.from(root, 'base64')).Links.map(({ Hash }) => Hash.toString());
  assert.equal(leaves.length, 3);
  for (const leaf of leaves) {
    const answered = Buffer.from(await other.ask('get', leaf), 'base64');
    const { body } = await core.get(`/ipfs/${leaf}?format=raw`);
    assert.deepEqual(answered, body);
  }

  // Of theirs to us.
  const dag = new Dag();
  const large = randomBytes(600_000);
  const theirs = String(await dag.directory({ 'a.bin': large, 'b.txt': Buffer.from('theirs') }));
  for (const block of dag.blocks) await other.ask('put', Buffer.from(block).toString('base64'));
  await other.ask('provide', theirs);
  const sent = await store(core, theirs);
  assert.ok([200, 202].includes(sent.status));
  await until(
    'their directory is here',
    async () => (await core.get(`/messages/${sent.body.item_hash}/status`)).body.status as string,
    (status) => status === 'processed',
  );
  assert.deepEqual((await core.get(`/ipfs/${theirs}/a.bin`)).body, large);

  // It is not asked for a block of nonsense, and finds none that nobody has.
  const door = peer.urls[0]!;
  assert.equal((await fetch(`${door}/ipfs/abc?format=raw`)).status, 400);
  assert.equal((await fetch(`${door}/`)).status, 400);
  const health = (await (await fetch(`${door}/health`)).json()) as { status: string; connections: number };
  assert.equal(health.status, 'ok');
  assert.ok(health.connections >= 1);
  const metrics = await (await fetch(`${door}/metrics`)).text();
  assert.match(metrics, /^skerry_ipfs_searches_total\{result="found"\} [1-9]/m);
  assert.match(metrics, /^skerry_ipfs_connections [1-9]/m);
  await peer[Symbol.asyncDispose]();
  const missing = String(new Dag().put(randomBytes(50)));
  assert.equal((await store(core, missing)).status, 202);
  assert.equal((await core.get(`/ipfs/${cid}?format=raw`)).status, 200);
});
