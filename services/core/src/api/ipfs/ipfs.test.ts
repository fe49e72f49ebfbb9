import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { IPFS_LIMITS } from '../../store/ipfs/limits.ts';
import { type Illness, TestDaemon } from '../../store/ipfs/testing/daemon.ts';
import { Dag } from '../../store/ipfs/testing/dags.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const NOBODY = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';
const pinOf = (hash: string): MessageDraft => ({ type: 'IPFS_PIN', channel: 'test', content: { hash } });
const storeOf = (hash: string): MessageDraft => ({
  type: 'STORE',
  channel: 'test',
  content: { item_type: 'ipfs', item_hash: hash },
});

const statusOf = async (core: TestCore, hash: string) =>
  (await core.get(`/messages/${hash}/status`)).body.status as string;

async function createPair(options: Parameters<typeof createTestCore>[0] = {}) {
  const stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const core = stack.use(
    await createTestCore({ ...options, ipfs: { gateways: [daemon.url], ...options.ipfs } }),
  );
  return { daemon, core, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function addForm(core: TestCore, path: string, parts: Record<string, string | Buffer>) {
  const form = new FormData();
  for (const [name, value] of Object.entries(parts))
    typeof value === 'string' ? form.append(name, value) : form.append(name, new Blob([value as never]), 'f');
  const request = new Request('http://x/', { method: 'POST', body: form });
  const body = Buffer.from(await request.arrayBuffer());
  return core.post(path, body, { 'content-type': request.headers.get('content-type')! });
}

test('a pin of what others have is pending, then in force; its files are served with types, ranges and paths', async () => {
  await using pair = await createPair({ settings: { ipfsPinWaitMs: 100_000 } });
  const { daemon, core } = pair;
  const dag = new Dag();
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(600_000)]);
  const root = (await dag.directory({ 'page.html': Buffer.from('<html>'), 'pics/a.png': png })).toString();
  for (const block of dag.blocks) daemon.put(block);
  const answer = await core.send(signers.alice, pinOf(root), '/ipfs/pin');
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(answer.body, { item_hash: answer.body.item_hash, status: 'success' });
  assert.equal((await core.get(`/storage/count/${root}`)).body, 1);
  // Nobody is asked any more.
  daemon.illness = 'hung';
  const listed = await core.get(`/ipfs/${root}`);
  assert.deepEqual(
    listed.body.entries.map((entry: { name: string }) => entry.name),
    ['page.html', 'pics'],
  );
  const whole = await core.get(`/ipfs/${root}/pics/a.png`);
  assert.equal(whole.headers['content-type'], 'image/png');
  assert.deepEqual(whole.body, png);
  const part = await core.get(`/ipfs/${root}/pics/a.png`, { range: 'bytes=262100-262300' });
  assert.equal(part.status, 206);
  assert.deepEqual(part.body, png.subarray(262_100, 262_301));
  const page = await core.get(`/ipfs/${root}/page.html`);
  assert.equal(page.headers['content-type'], 'text/html');
  assert.equal(page.headers['content-disposition'], 'attachment');
  assert.match(String(page.headers['content-security-policy']), /sandbox/);
  const again = await core.get(`/ipfs/${root}/page.html`, { 'if-none-match': String(page.headers.etag) });
  assert.equal(again.status, 304);
  const head = await core.get(`/ipfs/${root}/pics/a.png`, {}, 'HEAD');
  assert.equal(head.headers['content-length'], png.length.toString());
  assert.equal(
    (await core.get(`/ipfs/${root}?format=raw`)).headers['content-type'],
    'application/vnd.ipld.raw',
  );
  assert.equal((await core.get(`/ipfs/${root}/nothing`)).body.code, 'FILE_NOT_FOUND');
  assert.equal((await core.get(`/storage/raw/${root}`)).body.code, 'NOT_UNIXFS');
});

test('STORE messages of IPFS wait for their file, also through a kill of the fetch, and are rejected at the horizon', async () => {
  let nowMs = Date.now();
  await using pair = await createPair({ now: () => nowMs, pendingHorizonMs: 60_000 });
  const { daemon, core } = pair;
  const dag = new Dag();
  const root = (await dag.directory({ a: Buffer.from('here') })).toString();
  const first = await core.send(signers.alice, storeOf(root), '/messages');
  const lost = await core.send(signers.alice, storeOf(NOBODY), '/messages');
  assert.deepEqual([first.status, lost.status], [202, 202]);
  await until(
    'both were tried',
    () => core.fetcher.counts,
    ({ failed }) => failed >= 2,
  );
  for (const block of dag.blocks) daemon.put(block);
  nowMs += 5_000;
  await until(
    'the first has its file',
    () => statusOf(core, first.body.item_hash),
    (status) => status === 'processed',
  );
  nowMs += 60_000;
  await core.rooms.pipeline.expire();
  await core.rooms.pipeline.idle();
  const status = await core.get(`/messages/${lost.body.item_hash}/status`);
  assert.deepEqual([status.body.status, status.body.reason.code], ['rejected', 'FILE_NOT_FOUND']);
  await until('nobody looks for it any more', async () => {
    nowMs += 400_000;
    const rows = await core.rooms.db.selectFrom('wanted_files').select('hash').execute();
    return rows.length === 0;
  });
  // What comes later revives it.
  const added = await addForm(core, '/ipfs/add_file', { file: Buffer.from('hello world\n') });
  assert.equal(added.body.hash, NOBODY);
  await core.rooms.pipeline.idle();
  assert.equal(await statusOf(core, lost.body.item_hash), 'processed');
});

/** A core node whose IPFS is ill in some way, by a daemon or by a gateway. */
async function createIll(kind: 'gateway' | 'daemon', illness: Illness, timeoutMs?: number) {
  const stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  daemon.illness = illness;
  const limit = timeoutMs === undefined ? {} : { timeoutMs };
  const core = stack.use(
    await createTestCore({
      ipfs: { ...limit, ...(kind === 'daemon' ? { rpcUrl: daemon.url } : { gateways: [daemon.url] }) },
    }),
  );
  const url = `${await core.listen()}/api/v0/ipfs/${NOBODY}`;
  return { daemon, core, url, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

for (const kind of ['gateway', 'daemon'] as const)
  for (const illness of ['hung', 'silent'] as const) {
    test(`while all requests to a ${illness} ${kind} wait, messages go through`, async () => {
      await using ill = await createIll(kind, illness);
      const { core, daemon } = ill;
      const gone = new AbortController();
      let waiting = 120;
      const reads = Array.from({ length: waiting }, () =>
        fetch(ill.url, { signal: gone.signal }).finally(() => waiting--),
      );
      const pending = await core.send(signers.alice, storeOf(NOBODY), '/messages');
      assert.equal(pending.status, 202);
      await until(
        'as many requests as there may be',
        () => daemon.requests,
        (requests) => requests >= IPFS_LIMITS.slots,
      );
      for (let n = 0; n < 20; n++) {
        const { body } = signMessage(
          { type: 'POST', channel: illness, content: { type: 'note', content: n } },
          signers.bob,
        );
        assert.equal((await core.post('/messages', body)).status, 200);
      }
      assert.equal((await core.get('/health')).status, 200);
      // Those that found no turn may have been refused.
      assert.ok(waiting >= IPFS_LIMITS.slots - 1, `${waiting} of the requests wait`);
      gone.abort();
      await Promise.allSettled(reads);
    });

    test(`requests to a ${illness} ${kind} end, with the reason`, async () => {
      await using ill = await createIll(kind, illness, 300);
      const answers = await Promise.all(Array.from({ length: 120 }, () => fetch(ill.url)));
      const codes = await Promise.all(
        answers.map(async (one) => `${one.status} ${((await one.json()) as { code: string }).code}`),
      );
      for (const code of new Set(codes))
        assert.match(code, /^(504 IPFS_TIMEOUT|503 (IPFS_UNAVAILABLE|OVERLOADED))$/);
    });
  }

test('the store of a daemon that is full says so, and takes files again when it is not', async () => {
  await using daemon = await TestDaemon.start();
  await using core = await createTestCore({ ipfs: { rpcUrl: daemon.url } });
  daemon.illness = 'full';
  const full = await addForm(core, '/ipfs/add_file', { file: Buffer.from('content') });
  assert.deepEqual([full.status, full.body.code], [507, 'STORAGE_FULL']);
  daemon.illness = undefined;
  const added = await addForm(core, '/ipfs/add_file', { file: Buffer.from('content') });
  assert.deepEqual([added.status, added.body.size], [200, 7]);
  assert.deepEqual((await core.get(`/ipfs/${added.body.hash}`)).body.toString(), 'content');
});

test('what nothing keeps goes after its grace, what a message or another directory keeps stays', async () => {
  let nowMs = Date.now();
  await using pair = await createPair({ now: () => nowMs, fileGraceMs: 3_600_000 });
  const { core } = pair;
  const large = randomBytes(500_000);
  const kept = await addForm(core, '/ipfs/add_file', { file: large });
  const loose = await addForm(core, '/ipfs/add_file', {
    file: Buffer.concat([large.subarray(0, 262_144), Buffer.from('x')]),
  });
  const message = await core.send(signers.alice, pinOf(kept.body.hash), '/ipfs/pin');
  assert.equal(message.status, 200);
  nowMs += 4_000_000;
  assert.equal(await core.rooms.ipfs.sweep(), 1);
  const { Sweep } = await import('../../store/files/sweep.ts');
  const { createLogger } = await import('@skerry/kit');
  const sweep = new Sweep({
    db: core.rooms.db,
    blobs: core.blobs,
    claims: core.rooms.files.claims,
    graceMs: 3_600_000,
    doomedMs: 0,
    now: () => nowMs,
    log: createLogger('test', 'silent'),
  });
  // Of the loose one only the blocks that it does not share: its root and its last leaf.
  assert.equal(await sweep.round(), 2);
  assert.deepEqual((await core.get(`/ipfs/${kept.body.hash}`)).body, large);
  assert.equal((await core.get(`/ipfs/${loose.body.hash}`)).body.code, 'CID_NOT_FOUND');
  await core.send(signers.alice, {
    type: 'FORGET',
    channel: 'test',
    content: { hashes: [message.body.item_hash] },
  });
  assert.equal(await core.rooms.ipfs.sweep(), 1);
  assert.equal(await sweep.round(), 3);
});
