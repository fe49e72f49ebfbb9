import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sha256Hex } from '@skerry/protocol';
import { sql } from 'kysely';
import type { BlobStore } from '../store/files/blob-store.ts';
import { createDirectoryBlobStore } from '../store/files/directory-store.ts';
import { createS3BlobStore } from '../store/files/s3/store.ts';
import { startProxy } from '../store/files/testing/s3-proxy.ts';
import { startTestS3 } from '../store/files/testing/s3-server.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

const { alice, bob } = signers;
const T0 = 1_700_000_000;

/** A POST of the network form whose content is a file. */
function createPost(n: number) {
  const content = JSON.stringify({ address: alice.address, time: T0 + n, type: 'file', content: { n } });
  const hash = sha256Hex(content);
  const signature = alice.sign(`ETH\n${alice.address}\nPOST\n${hash}`);
  const fields = { chain: 'ETH', sender: alice.address, type: 'POST', time: T0, item_type: 'storage' };
  return {
    content,
    hash,
    body: JSON.stringify({ message: { ...fields, item_hash: hash, signature } }),
  };
}

async function keep(blobs: BlobStore, text: string): Promise<void> {
  const blob = await blobs.receive(Readable.from([Buffer.from(text)]), 10_000);
  await blob.keep();
  await blob.discard();
}

const statusOf = async (core: TestCore, hash: string) => {
  const { body } = await core.get(`/messages/${hash}/status`);
  return [body.status, body.reason?.code ?? null];
};

async function checkFault(
  blobs: BlobStore,
  fail: (content: { hash: string }) => Promise<void>,
  heal: (content: { hash: string }) => Promise<void>,
): Promise<void> {
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(line) });
  let nowMs = Date.now();
  let setBackMs = 0;
  const clocks = { now: () => nowMs - setBackMs, uptime: () => nowMs };
  await using core = await createTestCore({ blobs, log, ...clocks, pendingHorizonMs: 60_000 });
  const { pipeline, db } = core.rooms;
  // What its database said while it was made.
  lines.length = 0;
  const late = createPost(1);
  assert.equal((await core.post('/messages', late.body)).status, 202);
  await keep(blobs, late.content);
  await fail(late);
  // Its content is here and cannot be read: nothing can be said of it, also at the end of the horizon.
  await pipeline.touch([`file:${late.hash}`]);
  await pipeline.idle();
  nowMs += 120_000;
  await pipeline.expire();
  await pipeline.idle();
  assert.deepEqual(await statusOf(core, late.hash), ['pending', 'CONTENT_NOT_FOUND']);
  // A new one is not taken, and its sender is told to come back.
  const refused = await core.post('/messages', late.body);
  assert.deepEqual([refused.status, refused.body.code], [503, 'STORAGE_UNAVAILABLE']);
  assert.ok(Number(refused.headers['retry-after']) > 0);
  // Others are decided meanwhile.
  const post = { type: 'POST', content: { type: 'note', content: 1 } } as const;
  const sent = await core.send(bob, post);
  await core.send(bob, { type: 'FORGET', content: { hashes: [sent.body.item_hash] } });
  assert.equal((await statusOf(core, sent.body.item_hash))[0], 'forgotten');
  await pipeline.idle();
  const inLine = await sql<{ item_hash: string }>`select item_hash from reconsider`.execute(db);
  assert.deepEqual(inLine.rows, [{ item_hash: late.hash }]);
  await heal(late);
  nowMs += 60_000;
  // A rest is as long as it is, whatever the clock is set to meanwhile.
  setBackMs = 3_600_000;
  await until(
    'it is decided when its content can be read',
    () => statusOf(core, late.hash),
    ([status]) => status === 'processed',
  );
  assert.ok(lines.length < 10, lines.join(''));
}

test('F8: an object store that fails for a while rejects no message', async (t) => {
  await using server = await startTestS3();
  const spool = await mkdtemp(join(tmpdir(), 'skerry-spool-'));
  t.after(() => rm(spool, { recursive: true, force: true }));
  let answer: 503 | undefined;
  using proxy = await startProxy(server.settings.endpoint, () => answer);
  const blobs = await createS3BlobStore({ ...server.settings, endpoint: proxy.endpoint }, spool);
  const fail = async () => {
    answer = 503;
  };
  const heal = async () => {
    answer = undefined;
  };
  await checkFault(blobs, fail, heal);
});

test('F8: a disk that fails for a while rejects no message', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-files-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const blobs = await createDirectoryBlobStore(directory);
  const pathOf = (hash: string) => join(directory, hash.slice(0, 2));
  await checkFault(
    blobs,
    async ({ hash }) => {
      await rename(pathOf(hash), `${pathOf(hash)}.away`);
      await writeFile(pathOf(hash), 'no directory');
    },
    async ({ hash }) => {
      await rm(pathOf(hash));
      await rename(`${pathOf(hash)}.away`, pathOf(hash));
    },
  );
});
