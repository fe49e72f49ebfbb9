import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import type { Database } from '@skerry/database';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { MIGRATIONS } from '../../testing/core.ts';
import { Claims } from '../files/claims.ts';
import { createDirectoryBlobStore } from '../files/directory-store.ts';
import type { Schema } from '../schema.ts';
import { createBlockIndex } from './block-index.ts';
import { parseCid } from './cid.ts';
import { createEmbeddedIpfs } from './embedded.ts';
import { createGatewaySource } from './gateways.ts';
import type { Ipfs } from './ipfs.ts';
import { createKuboIpfs } from './kubo.ts';
import { createPinBook } from './pin-book.ts';
import { readTestKuboUrl } from './testing/config.ts';
import { type Illness, TestDaemon } from './testing/daemon.ts';
import { Dag } from './testing/dags.ts';
import { describeIpfs, type IpfsUnderTest } from './testing/ipfs-suite.ts';

/** For those who never answer. */
const TIMEOUT_MS = 300;
/** For all others, however slow the machine is. */
const PATIENCE_MS = 60_000;
const { signal } = new AbortController();
let database: TestDatabase<Schema>;
before(async () => {
  database = await createTestDatabase<Schema>({
    migrations: MIGRATIONS,
    log: createLogger('test', 'silent'),
  });
});
after(() => database[Symbol.asyncDispose]());

async function openEmbedded(daemon: TestDaemon, db: Database<Schema>['kysely'], timeoutMs = PATIENCE_MS) {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-ipfs-'));
  const index = createBlockIndex(db, Date.now);
  const ipfs = createEmbeddedIpfs({
    blobs: await createDirectoryBlobStore(directory),
    claims: new Claims(),
    index,
    source: createGatewaySource({ urls: () => [daemon.url], timeoutMs }),
  });
  return { ipfs, index, remove: () => rm(directory, { recursive: true, force: true }) };
}

const openKubo = (url: string, timeoutMs: number): Ipfs =>
  createKuboIpfs({ url, authorization: undefined, timeoutMs }, createPinBook(database.kysely, Date.now));

describeIpfs('the node itself', async (): Promise<IpfsUnderTest> => {
  const daemon = await TestDaemon.start();
  const { ipfs, index, remove } = await openEmbedded(daemon, database.kysely);
  return {
    ipfs,
    offer: async (blocks) => void blocks.map((block) => daemon.put(block)),
    keeps: (id) => index.isComplete(id.text),
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      await remove();
    },
  };
});

const realUrl = readTestKuboUrl();

/** Puts a block into a real daemon. */
async function putBlock(url: string, block: Uint8Array): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([block as Uint8Array<ArrayBuffer>]));
  for (const format of ['v0', 'raw'])
    await fetch(`${url}/api/v0/block/put?format=${format}&mhtype=sha2-256`, { method: 'POST', body: form });
}

describeIpfs(realUrl === undefined ? 'a daemon' : 'a real kubo daemon', async (): Promise<IpfsUnderTest> => {
  const daemon = await TestDaemon.start();
  const url = realUrl ?? daemon.url;
  return {
    ipfs: openKubo(url, realUrl ? 5_000 : PATIENCE_MS),
    async offer(blocks) {
      for (const block of blocks) realUrl ? await putBlock(realUrl, block) : daemon.put(block);
    },
    async keeps(id) {
      if (!realUrl) return daemon.pins.has(id.text);
      const answer = await fetch(`${url}/api/v0/pin/ls?arg=${id.text}`, { method: 'POST' });
      return answer.ok;
    },
    [Symbol.asyncDispose]: () => daemon[Symbol.asyncDispose](),
  };
});

const ILL: readonly (readonly [Illness, string])[] = [
  ['hung', 'IPFS_TIMEOUT'],
  ['silent', 'IPFS_TIMEOUT'],
  ['broken', 'IPFS_UNAVAILABLE'],
  ['lying', 'IPFS_UNAVAILABLE'],
  ['refusing', 'IPFS_UNAVAILABLE'],
];

const addTo = (ipfs: Ipfs, content: Uint8Array) =>
  ipfs.add(Readable.from([content]), { cidVersion: 0, limitBytes: 1 << 30, signal });

for (const name of ['embedded', 'kubo'] as const)
  test(`${name}: who is ill in whatever way is given up in time, with the reason`, async () => {
    await using daemon = await TestDaemon.start();
    const dag = new Dag();
    const root = await dag.directory({ 'a.txt': Buffer.alloc(400_000, 'a') });
    for (const block of dag.blocks) daemon.put(block);
    const id = parseCid(root.toString());
    for (const [illness, code] of ILL) {
      daemon.illness = illness;
      const timeoutMs = code === 'IPFS_TIMEOUT' ? TIMEOUT_MS : PATIENCE_MS;
      const embedded = await openEmbedded(daemon, database.kysely, timeoutMs);
      const ipfs = name === 'embedded' ? embedded.ipfs : openKubo(daemon.url, timeoutMs);
      await assert.rejects(ipfs.pin(id, { limitBytes: 1 << 30, signal }), { code }, `${name} ${illness}`);
      await assert.rejects(ipfs.stat(id, [], signal), { code: /IPFS_(TIMEOUT|UNAVAILABLE)/ }, illness);
      if (name === 'kubo' && illness !== 'lying')
        await assert.rejects(addTo(ipfs, Buffer.alloc(1_000)), { code }, `add ${illness}`);
      await embedded.remove();
    }
  });

test('a slow daemon is waited for as long as something comes; a full one says so', async () => {
  await using daemon = await TestDaemon.start();
  // One block, which takes longer than the daemon may be silent.
  const content = Buffer.alloc(250_000, 'slow');
  const timeoutMs = 2_000;
  const ipfs = openKubo(daemon.url, timeoutMs);
  const { id } = await addTo(ipfs, content);
  daemon.illness = 'slow';
  const startMs = performance.now();
  assert.deepEqual(await buffer(await ipfs.read(id, undefined, signal)), content);
  assert.ok(performance.now() - startMs > timeoutMs, 'it was slow');
  daemon.illness = 'full';
  await assert.rejects(addTo(ipfs, content), { code: 'STORAGE_FULL' });
});

test('a fetch that breaks off goes on where it was; what nobody finishes is let go of', async () => {
  await using daemon = await TestDaemon.start();
  const dag = new Dag();
  const files = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`f${n}`, Buffer.from(`file ${n}`)]));
  const id = parseCid((await dag.directory(files)).toString());
  for (const block of dag.blocks.slice(0, 20)) daemon.put(block);
  daemon.put(dag.blocks.at(-1)!);
  let nowMs = 1_000_000;
  const directory = await mkdtemp(join(tmpdir(), 'skerry-ipfs-'));
  const index = createBlockIndex(database.kysely, () => nowMs);
  const ipfs = createEmbeddedIpfs({
    blobs: await createDirectoryBlobStore(directory),
    claims: new Claims(),
    index,
    source: createGatewaySource({ urls: () => [daemon.url], timeoutMs: PATIENCE_MS, now: () => nowMs }),
  });
  const pin = () => ipfs.pin(id, { limitBytes: 1 << 30, signal });
  await assert.rejects(pin(), { code: 'CID_NOT_FOUND' });
  const before = daemon.requests;
  for (const block of dag.blocks) daemon.put(block);
  await pin();
  assert.ok(daemon.requests - before < 30, `${daemon.requests - before} requests for the rest`);
  const other = new Dag();
  const missing = parseCid(other.chain(3).toString());
  for (const block of other.blocks.slice(1)) daemon.put(block);
  await assert.rejects(ipfs.pin(missing, { limitBytes: 1 << 30, signal }), { code: 'CID_NOT_FOUND' });
  const dags = () =>
    database.kysely.selectFrom('ipfs_dags').select('complete').where('root', '=', missing.text).execute();
  await ipfs.tidy(nowMs);
  assert.deepEqual(await dags(), [{ complete: false }]);
  nowMs += 10;
  await ipfs.tidy(nowMs);
  assert.deepEqual(await dags(), []);
  await rm(directory, { recursive: true, force: true });
});
