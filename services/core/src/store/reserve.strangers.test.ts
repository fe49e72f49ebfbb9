import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { decideLogBytes, decideReserveBytes, openSharedHolds, Reserve } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { UnixFS } from 'ipfs-unixfs';
import { startDeliverer } from '../notify/webhooks/delivery/deliverer.ts';
import { LOCAL, register, startReceiver } from '../notify/webhooks/testing/setup.ts';
import { createHttpLink } from '../peers/sync/link.ts';
import { createTestCore, signers } from '../testing/core.ts';
import { createDirectoryBlobStore } from './files/directory-store.ts';
import { FileFetcher } from './files/fetcher.ts';
import { DirectoryPlace } from './files/parts/directory-place.ts';
import { Parts } from './files/parts/parts.ts';
import { parseCid } from './ipfs/cid.ts';
import { Dag } from './ipfs/testing/dags.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const { alice } = signers;
const { signal } = new AbortController();
const note = (n: number) => ({ type: 'POST', content: { type: 'note', content: n } }) as const;

/** A reserve on a disk of 100 GiB, 10 of them free until it is told otherwise, and the lines of a log that it writes to. */
async function watchDisk() {
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(line) });
  let freeBytes = 10 * GIB;
  const measure = async () => ({ freeBytes, sizeBytes: 100 * GIB });
  const reserve = new Reserve({ setMib: 0, log, measure });
  await reserve.watch('/data');
  const setFree = (bytes: number) => {
    freeBytes = bytes;
    return reserve.look();
  };
  return { lines, log, reserve, setFree };
}

test('F6: the reserve has room for the log of the database and for its recovery, on disks of every size', () => {
  for (const diskBytes of [100 * MIB, 672 * MIB, 5 * GIB, 20 * GIB, 4_000 * GIB]) {
    const logBytes = decideLogBytes(diskBytes);
    assert.ok(logBytes >= 32 * MIB && logBytes <= 512 * MIB);
    assert.equal(decideReserveBytes(diskBytes, 0), 2 * logBytes);
  }
  assert.equal(decideReserveBytes(4_000 * GIB, 0), GIB);
  assert.equal(decideReserveBytes(672 * MIB, 0), 64 * MIB);
  assert.equal(decideReserveBytes(4_000 * GIB, 3), 3 * MIB);
});

test('F6: below the reserve a node takes nothing new, says so once, goes on reading, and resumes by itself', async () => {
  await using stack = new AsyncDisposableStack();
  const { lines, log, reserve, setFree } = await watchDisk();
  const other = stack.use(await createTestCore());
  const url = await other.listen();
  const core = stack.use(await createTestCore({ log, reserve, peers: [createHttpLink(url)] }));
  const first = await core.send(alice, note(1));
  assert.equal(first.status, 200);
  await other.send(alice, note(2));

  await setFree(GIB - 1);
  for (let n = 0; n < 20; n++) {
    const { status, body, headers } = await core.send(alice, note(3));
    assert.deepEqual([status, body.code], [507, 'STORAGE_FULL']);
    assert.ok(Number(headers['retry-after']) > 0);
    assert.match(body.error, /1024 MiB/);
  }
  const upload = await core.post('/storage/add_json', '{"a":1}');
  assert.deepEqual([upload.status, upload.body.code], [507, 'STORAGE_FULL']);
  const hook = {
    type: 'WEBHOOK',
    content: { url: 'https://example.com/', events: ['message.new'], secret: 'x'.repeat(32) },
  };
  assert.equal((await core.send(alice, hook, '/webhooks')).status, 507);
  assert.equal(await core.rooms.sync.syncer.round(signal), false);
  const { body: health, status } = await core.get('/health');
  const { status: disk, takes_writes, reserve_bytes } = health.checks.disk;
  assert.deepEqual([status, disk, takes_writes, reserve_bytes], [200, 'degraded', false, GIB]);
  assert.equal((await core.get(`/messages/${first.body.item_hash}`)).status, 200);
  assert.equal((await core.get('/messages')).body.pagination.total, 1);

  // A little more is not enough, so that it does not flutter.
  await setFree(GIB + 1);
  assert.equal((await core.send(alice, note(4))).status, 507);
  await setFree(2 * GIB);
  assert.equal((await core.send(alice, note(4))).status, 200);
  assert.equal(await core.rooms.sync.syncer.round(signal), true);
  assert.equal((await core.get('/messages')).body.pagination.total, 3);
  const said = lines.filter((line) => /nearly full|has space again/.test(line));
  assert.equal(said.length, 2, said.join(''));
});

test('F6: an upload ends where the reserve begins, before the disk is looked at again', async () => {
  const log = createLogger('core', 'fatal');
  const measure = async () => ({ freeBytes: GIB + 10 * MIB, sizeBytes: 100 * GIB });
  const reserve = new Reserve({ setMib: 0, log, measure });
  await reserve.watch('/data');
  await using core = await createTestCore({ reserve });
  const megabytes = (count: number) => Readable.from(Array.from({ length: count }, () => Buffer.alloc(MIB)));
  const small = await core.blobs.receive(megabytes(8), GIB);
  await small.discard();
  await assert.rejects(core.blobs.receive(megabytes(8), GIB), { code: 'STORAGE_FULL' });
});

test('what nobody announces ends where large files do, and refuses nothing else: one without a length filled the disk to the reserve', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-unknown-'));
  t.after(() => rm(home, { recursive: true }));
  const reserve = await openReserve(100 * MIB);
  const blobs = await createDirectoryBlobStore(home, { reserve });
  let taken = 0;
  const endless = function* () {
    for (; taken < 600; taken++) yield Buffer.alloc(MIB);
  };
  const receiving = blobs.receive(Readable.from(endless()), 20 * GIB);
  await assert.rejects(receiving, { code: 'STORAGE_FULL', message: /there is no room/ });
  assert.deepEqual([reserve.hasRoom, taken < 110, await readdir(join(home, 'incoming'))], [true, true, []]);
});

test('a file of IPFS is bounded by the room that there is as it comes: it says beforehand nothing of how large it is', async () => {
  const reserve = await openReserve(76 * MIB);
  const dag = new Dag();
  const parts = Array.from({ length: 40 }, (_, n) => dag.put(Buffer.alloc(MIB, n + 1), 0x55));
  const file = new UnixFS({ type: 'file', blockSizes: parts.map(() => BigInt(MIB)) });
  const root = dag.node(
    file,
    parts.map((cid) => ({ cid, size: MIB })),
  );
  let asked = 0;
  const blockSource = {
    async fetch({ text }: { readonly text: string }) {
      asked++;
      return dag.blocks[dag.cids.findIndex((cid) => `${cid}` === text)]!;
    },
  };
  await using core = await createTestCore({ reserve, blockSource, uploadLimitBytes: 20 * GIB });
  await core.fetcher[Symbol.asyncDispose]();
  const pinning = core.rooms.ipfs.pin(parseCid(`${root}`), { limitBytes: 20 * GIB, signal });
  await assert.rejects(pinning, { code: 'STORAGE_FULL', message: /there is no room/ });
  assert.deepEqual([reserve.hasRoom, asked < 40], [true, true]);
  assert.equal((await core.send(alice, note(1))).status, 200);
});

/** A disk of 100 GiB, of which 1 GiB is the reserve and half of one more is for what is small. */
async function openReserve(above: number, log = createLogger('core', 'fatal')) {
  const measure = async () => ({ freeBytes: 1.5 * GIB + above, sizeBytes: 100 * GIB });
  const reserve = new Reserve({ setMib: 0, log, measure });
  await reserve.watch('/data');
  return reserve;
}

test('what is large and does not fit is refused before its first byte, and refuses nothing else', async () => {
  const reserve = await openReserve(100 * MIB);
  const hold = (bytes: number) => reserve.hold(bytes, '/data/files');
  assert.throws(() => hold(101 * MIB), { code: 'STORAGE_FULL', message: /no room for 101 MiB/ });
  {
    using first = hold(60 * MIB);
    assert.throws(() => hold(60 * MIB), {
      code: 'STORAGE_FULL',
      message:
        /for 60 MiB here: 1636 MiB of the disk are free; 60 MiB of it are kept for other files on their way, and 1536 MiB have to stay free$/,
    });
    // What is on the disk is no longer held: the disk has less.
    reserve.take(60 * MIB);
    first.use(60 * MIB);
    using _second = hold(40 * MIB);
    assert.throws(() => hold(8 * MIB), { code: 'STORAGE_FULL' });
    using _small = hold(MIB);
  }
  using _third = hold(40 * MIB);
  assert.equal(reserve.hasRoom, true);
});

/** Two processes of one disk with so much room above the reserve, and above what is for what is small. */
async function openTwo(t: TestContext, above: number) {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-holds-'));
  t.after(() => rm(directory, { recursive: true }));
  const log = createLogger('core', 'fatal');
  const measure = async () => ({ freeBytes: 1.5 * GIB + above, sizeBytes: 100 * GIB, device: 7 });
  const open = async () => {
    const shared = openSharedHolds(directory, log);
    t.after(() => shared[Symbol.dispose]());
    const reserve = new Reserve({ setMib: 0, log, measure, shared });
    await reserve.watch('/data');
    return { reserve, hold: (bytes: number) => reserve.hold(bytes, '/data/files') };
  };
  return { directory, one: await open(), other: await open() };
}

test('processes of one disk have its room together: each believed to have all of it', async (t) => {
  const { directory, one, other } = await openTwo(t, 100 * MIB);
  {
    using first = one.hold(60 * MIB);
    assert.throws(() => other.hold(60 * MIB), { code: 'STORAGE_FULL' });
    using _second = other.hold(32 * MIB);
    // What came lately may not be in what the other has measured.
    one.reserve.take(30 * MIB);
    first.use(30 * MIB);
    assert.throws(() => other.hold(20 * MIB), { code: 'STORAGE_FULL' });
  }
  for (let looks = 0; looks < 3; looks++) await one.reserve.look();
  assert.deepEqual(await readdir(directory), []);
  using _all = other.hold(100 * MIB);
});

test('what a process keeps that was killed is free again, and its file goes', async (t) => {
  const { directory, one, other } = await openTwo(t, 100 * MIB);
  using _lost = one.hold(90 * MIB);
  const [name] = await readdir(directory);
  const setAge = (seconds: number) => {
    const at = Date.now() / 1_000 - seconds;
    return utimes(join(directory, name!), at, at);
  };
  await setAge(5);
  assert.throws(() => other.hold(90 * MIB), { code: 'STORAGE_FULL' });
  await setAge(20);
  using _hold = other.hold(90 * MIB);
  assert.equal((await readdir(directory)).length, 2);
  await setAge(120);
  await other.reserve.look();
  assert.equal((await readdir(directory)).length, 1);
  // One that was only frozen says again what it keeps.
  await one.reserve.look();
  assert.equal((await readdir(directory)).length, 2);
});

test('who announces much keeps next to none of it from others, and what comes ends before the reserve', async () => {
  const reserve = await openReserve(GIB);
  const hold = (bytes: number) => reserve.hold(bytes, '/data/files');
  {
    using _announced = hold(GIB);
    using _another = hold(900 * MIB);
  }
  using slow = hold(GIB);
  let came = 0;
  const send = () => {
    using fast = hold(900 * MIB);
    for (; came < 900; came++) {
      reserve.take(MIB);
      fast.use(MIB);
    }
  };
  send();
  assert.equal(came, 900);
  const go = () => {
    for (; came < 2_000; came++) {
      reserve.take(MIB);
      slow.use(MIB);
    }
  };
  assert.throws(go, { code: 'STORAGE_FULL', message: /there is no room/ });
  assert.ok(came < 1_024);
  // What is small goes on behind it.
  assert.equal(reserve.hasRoom, true);
  reserve.take(400 * MIB);
});

test('what is written while the disk is looked at counts until the next look', async () => {
  const measured = Promise.withResolvers<void>();
  let looks = 0;
  const measure = async () => {
    const disk = { freeBytes: 1.5 * GIB + 20 * MIB, sizeBytes: 100 * GIB };
    if (looks++ === 1) await measured.promise;
    return disk;
  };
  const reserve = new Reserve({ setMib: 0, log: createLogger('core', 'fatal'), measure });
  await reserve.watch('/data');
  const look = reserve.look();
  reserve.take(10 * MIB);
  measured.resolve();
  await look;
  assert.throws(() => reserve.hold(15 * MIB, '/data'), { code: 'STORAGE_FULL' });
  await reserve.look();
  using _hold = reserve.hold(15 * MIB, '/data');
});

test('parts that rest go where the disk lacks room, the longest rest first; one that does not fit has none go', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-resting-'));
  t.after(() => rm(home, { recursive: true }));
  let above = GIB;
  const measure = async () => ({ freeBytes: 1.5 * GIB + above, sizeBytes: 100 * GIB });
  const reserve = new Reserve({ setMib: 0, log: createLogger('core', 'fatal'), measure });
  await reserve.watch(home);
  const directory = join(home, 'parts');
  const place = new DirectoryPlace(directory, home, reserve);
  let nowMs = Date.now();
  const parts = new Parts({ place, now: () => nowMs });
  const wholeOf = (n: number, sizeBytes = 20 * MIB) => ({
    ...{ hash: n.toString(16).padStart(64, '0'), sizeBytes },
    address: `0x${(n >> 2).toString(16).padStart(40, '0')}`,
  });
  const send = async (n: number, bytes: number, sizeBytes?: number) => {
    const whole = wholeOf(n, sizeBytes);
    using _held = parts.hold(whole);
    return await parts.append(whole, 0, Readable.from([Buffer.alloc(bytes)]));
  };
  const here = async () => (await readdir(directory)).map((name) => Number.parseInt(name.slice(0, 64), 16));
  for (let n = 0; n < 64; n++) await send(n, n < 4 ? MIB : 1);
  for (const n of [2, 0, 1]) {
    const { hash, address, sizeBytes } = wholeOf(n);
    const at = nowMs / 1_000 - 3_600 - (n + 1) * 60;
    await utimes(join(directory, `${hash}-${address}-${sizeBytes}`), at, at);
  }
  await assert.rejects(send(64, 1, 2 * GIB), { code: 'STORAGE_FULL' });
  await parts.tidy();
  assert.equal((await here()).length, 64);
  above = -1.5 * MIB;
  await reserve.look();
  await parts.tidy();
  assert.deepEqual([(await here()).filter((n) => n < 4), (await here()).length], [[0, 3], 62]);
  // Those of which something came lately stay, however little room there is.
  above = -GIB;
  await reserve.look();
  await parts.tidy();
  assert.equal((await here()).length, 61);
  nowMs += 11 * 60_000;
  await parts.tidy();
  assert.equal((await here()).length, 0);
});

test('on a full disk no delivery is planned, of which no warning comes, and it is when there is room again', async () => {
  const { lines, log, reserve, setFree } = await watchDisk();
  await using core = await createTestCore({ webhooks: LOCAL });
  await using receiver = await startReceiver();
  await register(core, alice, { url: receiver.url });
  await setFree(0);
  await using _deliverer = startDeliverer({ ...core.rooms, log, reserve });
  await core.send(alice, note(1));
  await setFree(10 * GIB);
  await receiver.waitFor((all) => all.length === 1);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)).map(({ level, err }) => [level, err]),
    [
      [50, undefined],
      [30, undefined],
    ],
  );
});

test('room is that of the disk on which a file will be', async () => {
  const disks = new Map([
    ['/data', { freeBytes: 2 * GIB, sizeBytes: 100 * GIB, device: 1 }],
    ['/data/files', { freeBytes: 50 * GIB, sizeBytes: 100 * GIB, device: 2 }],
    ['/data/postgres', { freeBytes: 2 * GIB, sizeBytes: 100 * GIB, device: 1 }],
  ]);
  const measure = async (directory: string) => disks.get(directory)!;
  const reserve = new Reserve({ setMib: 0, log: createLogger('core', 'fatal'), measure });
  for (const directory of disks.keys()) await reserve.watch(directory);
  using _file = reserve.hold(4 * GIB, '/data/files/incoming');
  assert.throws(() => reserve.hold(4 * GIB, '/data/parts'), { code: 'STORAGE_FULL' });
  using _part = reserve.hold(400 * MIB, '/data/parts');
  // Two directories of one disk have one room.
  assert.throws(() => reserve.hold(480 * MIB, '/data/postgres'), { code: 'STORAGE_FULL' });
});

test('a file of a peer that does not fit is not fetched until the disk is full: the node says so, and takes messages', async () => {
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(line) });
  const reserve = await openReserve(20 * MIB, log);
  await using core = await createTestCore({ reserve, log, uploadLimitBytes: 20 * GIB });
  let taken = 0;
  const stream = Readable.from(
    (function* () {
      for (; taken < 600; taken++) yield Buffer.alloc(MIB);
    })(),
  );
  const peer = {
    name: 'peer',
    handles: () => true,
    open: async () => ({ stream, contentType: 'text/plain', sizeBytes: 10 * GIB }),
  };
  const hash = '7'.repeat(64);
  const wanted = { type: 'STORE', content: { item_type: 'storage', item_hash: hash } };
  assert.equal((await core.send(alice, wanted)).status, 202);
  const fetcher = new FileFetcher({ ...core.rooms, sources: [peer], log });
  await fetcher.look(signal);
  await fetcher.idle();
  assert.equal((await core.send(alice, note(1))).status, 200);
  assert.deepEqual([reserve.hasRoom, taken < 2, stream.destroyed], [true, true, true]);
  assert.deepEqual(
    lines.filter((line) => /does not fit here/.test(line)).map((line) => JSON.parse(line).file),
    [hash],
  );
});

test('files of IPFS that do not fit are refused before their first block, too', async () => {
  const reserve = await openReserve(12 * MIB);
  await using core = await createTestCore({ reserve, uploadLimitBytes: 25 * MIB });
  const url = await core.listen();
  for (const [sizeBytes, status] of [
    [20 * MIB, 507],
    [9 * MIB, 200],
  ] as const) {
    const body = new FormData();
    body.append('file', new Blob([Buffer.alloc(sizeBytes)]));
    const answer = await fetch(`${url}/api/v0/ipfs/add_file`, { method: 'POST', body });
    assert.equal(answer.status, status, await answer.text());
  }
  assert.equal((await core.send(alice, note(1))).status, 200);
});
