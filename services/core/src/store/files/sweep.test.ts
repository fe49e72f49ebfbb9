import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError, type ItemHash } from '@skerry/protocol';
import fc from 'fast-check';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { Claims } from './claims.ts';
import { createDirectoryBlobStore } from './directory-store.ts';
import { Files } from './files.ts';
import { createS3BlobStore } from './s3/store.ts';
import { decideSweep, type Reference, Sweep, type SweepOptions } from './sweep.ts';
import { decideMark, SweepMark } from './sweep-mark.ts';
import { startTestS3 } from './testing/s3-server.ts';

const GRACE_MS = 3_600_000;
const HOUR_MS = 3_600_000;
const log = createLogger('sweep', 'fatal');
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex') as ItemHash;

/** A sweep for which everything that was ever kept is old, or, with `ageMs` 0, nothing is. */
function createSweep(core: TestCore, ageMs = 2 * GRACE_MS, limits?: SweepOptions['limits']): Sweep {
  return new Sweep({
    ...(limits ? { limits } : {}),
    db: core.rooms.db,
    blobs: core.blobs,
    claims: core.rooms.files.claims,
    mark: core.blobs.mark && new SweepMark({ db: core.rooms.db, mark: core.blobs.mark, log }),
    graceMs: GRACE_MS,
    now: () => Date.now() + ageMs,
    doomedMs: 0,
    log,
  });
}

const receive = (core: TestCore, bytes: Buffer) => core.rooms.files.receive(Readable.from([bytes]));
const fieldsFor = (bytes: Buffer) => ({
  address: signers.alice.address,
  signature: signers.alice.sign(hashOf(bytes)),
  channel: 'files',
  tags: [],
});

test('pure: only what is old and unpinned goes, never more than the limit', () => {
  const reference = fc.constantFrom<Reference | undefined>('pinned', 'unpinned', undefined);
  const blob = fc.record({ keptAtMs: fc.integer({ min: 0, max: 100 }), reference });
  fc.assert(
    fc.property(fc.array(blob), fc.integer({ min: 0, max: 100 }), fc.nat(20), (all, cutoffMs, limit) => {
      const blobs = all.map(({ keptAtMs }, n) => ({ hash: `${n}` as ItemHash, sizeBytes: 1, keptAtMs }));
      const known = new Map(
        all.flatMap((one, n) => (one.reference ? [[`${n}`, one.reference] as const] : [])),
      );
      const doomed = decideSweep(blobs, known, cutoffMs, limit);
      const may = all.flatMap((one, n) =>
        one.keptAtMs < cutoffMs && one.reference !== 'pinned' ? [`${n}`] : [],
      );
      assert.deepEqual(doomed, may.slice(0, limit));
    }),
  );
});

test('claims: one at a time, in turn', async () => {
  const claims = new Claims();
  const hash = 'a' as ItemHash;
  const order: number[] = [];
  const first = claims.tryTake(hash)!;
  assert.equal(claims.tryTake(hash), undefined);
  claims.tryTake('b' as ItemHash)![Symbol.dispose]();
  const others = [1, 2, 3].map(async (n) => {
    using _claim = await claims.take(hash);
    order.push(n);
    await new Promise(setImmediate);
    order.push(n);
  });
  first[Symbol.dispose]();
  await Promise.all(others);
  assert.deepEqual(order, [1, 1, 2, 2, 3, 3]);
  assert.ok(claims.tryTake(hash));
});

test('after the grace period: refused uploads and unpinned files go, pinned ones stay', async (t) => {
  const core = await createTestCore();
  t.after(() => core[Symbol.asyncDispose]());
  const { files, pipeline } = core.rooms;
  const [pinned, loose, adopted, refused] = Array.from({ length: 4 }, () => randomBytes(1000)) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  await files.store(await receive(core, pinned), 'text/plain', fieldsFor(pinned));
  await files.storeUnpinned(await receive(core, loose), 'application/json');
  await files.storeUnpinned(await receive(core, adopted), 'application/json');
  const { status } = await core.send(signers.bob, {
    type: 'STORE',
    content: { item_type: 'storage', item_hash: hashOf(adopted) },
  });
  assert.equal(status, 200, 'a message may pin an unpinned file');
  const submit = pipeline.submit;
  pipeline.submit = () => Promise.reject(new AppError('DATABASE_UNAVAILABLE', 'gone'));
  await assert.rejects(files.store(await receive(core, refused), 'text/plain', fieldsFor(refused)));
  pipeline.submit = submit;
  assert.equal((await core.blobs.list(undefined, 10)).length, 4);

  assert.equal(await createSweep(core, 0).round(), 0, 'within the grace period nothing goes');
  const sweep = createSweep(core);
  assert.equal(await sweep.round(), 2);
  assert.equal(await sweep.round(), 0);
  assert.deepEqual(
    (await core.blobs.list(undefined, 10)).map((blob) => blob.hash),
    [hashOf(pinned), hashOf(adopted)].sort(),
  );
  assert.equal((await core.get(`/storage/raw/${hashOf(loose)}`)).body.code, 'FILE_NOT_FOUND');
  for (const bytes of [pinned, adopted])
    assert.deepEqual((await core.get(`/storage/raw/${hashOf(bytes)}`)).body, bytes);
  const late = await core.send(signers.bob, {
    type: 'STORE',
    content: { item_type: 'storage', item_hash: hashOf(loose) },
  });
  assert.deepEqual([late.status, late.body.reason.code], [202, 'FILE_NOT_FOUND']);
});

test('a blob that is being stored at this moment stays, however old its bytes look', async (t) => {
  const core = await createTestCore();
  t.after(() => core[Symbol.asyncDispose]());
  const { files, pipeline } = core.rooms;
  const bytes = randomBytes(1000);
  const hash = hashOf(bytes);
  const submit = pipeline.submit.bind(pipeline);
  const arrived = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  pipeline.submit = async (accepted) => {
    arrived.resolve();
    await goOn.promise;
    return submit(accepted);
  };
  const storing = files.store(await receive(core, bytes), 'text/plain', fieldsFor(bytes));
  await arrived.promise;
  // On the disk, unknown to the database, and as old as can be.
  await utimes(join(core.filesDir, hash.slice(0, 2), hash.slice(2, 4), hash), 1, 1);
  const sweep = createSweep(core);
  assert.equal(await sweep.round(), 0);
  goOn.resolve();
  await storing;
  assert.equal(await sweep.round(), 0);
  assert.deepEqual((await core.get(`/storage/${hash}`)).body, bytes);
});

test('sweeps and uploads of the same few files at once: what was acknowledged is there, byte for byte', async (t) => {
  const core = await createTestCore();
  t.after(() => core[Symbol.asyncDispose]());
  const { files } = core.rooms;
  const sweep = createSweep(core);
  const contents = Array.from({ length: 6 }, (_, n) => Buffer.alloc(50_000, n));
  let uploading = true;
  let removed = 0;
  const sweeping = (async () => {
    while (uploading) removed += await sweep.round();
  })();
  await Promise.all(
    contents.map(async (bytes, n) => {
      // Stored and not pinned again and again, so that the sweep has work; at last pinned.
      for (let round = 0; round < 25 || removed === 0; round++) {
        const blob = await receive(core, bytes);
        await files.storeUnpinned(blob, 'text/plain');
        await blob.discard();
      }
      const blob = await receive(core, bytes);
      await files.store(blob, 'text/plain', fieldsFor(bytes));
      assert.deepEqual((await core.get(`/storage/${hashOf(bytes)}`)).body, bytes, `file ${n}`);
    }),
  );
  uploading = false;
  await sweeping;
  removed += await sweep.round();
  t.diagnostic(`${removed} removed between ${contents.length * 26} uploads or more`);
  assert.ok(removed > 0);
  for (const bytes of contents) assert.deepEqual((await core.get(`/storage/${hashOf(bytes)}`)).body, bytes);
});

test('what another process stores while it is about to go stays; what nobody stores goes after a while', async (t) => {
  const core = await createTestCore();
  t.after(() => core[Symbol.asyncDispose]());
  // Claims of one process do not hold in another one.
  const { db, intake, pipeline } = core.rooms;
  const options = { db, blobs: core.blobs, intake, pipeline, uploadLimitBytes: 10_000, now: Date.now };
  const elsewhere = new Files(options);
  let nowMs = Date.now() + 2 * GRACE_MS;
  const { claims } = core.rooms.files;
  const sweep = new Sweep({ db, blobs: core.blobs, claims, graceMs: GRACE_MS, now: () => nowMs, log });
  const [again, gone] = [randomBytes(1000), randomBytes(1000)];
  for (const bytes of [again, gone])
    await core.rooms.files.storeUnpinned(await receive(core, bytes), 'text/plain');
  assert.equal(await sweep.round(), 0, 'found, and not removed yet');
  assert.equal((await core.get(`/storage/raw/${hashOf(again)}`)).status, 200, 'it can be read until it goes');

  // Its bytes are there, and its message is about to be written, when the other one goes on.
  const submit = intake.client.keep.bind(intake.client);
  const arrived = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  intake.client.keep = async (accepted) => {
    arrived.resolve();
    await goOn.promise;
    return submit(accepted);
  };
  const storing = elsewhere.store(await receive(core, again), 'text/plain', fieldsFor(again));
  await arrived.promise;
  const age = 3 * GRACE_MS;
  nowMs += age;
  assert.equal(await sweep.round(), 1);
  goOn.resolve();
  await storing;
  assert.deepEqual((await core.get(`/storage/raw/${hashOf(again)}`)).body, again);
  assert.equal((await core.get(`/storage/raw/${hashOf(gone)}`)).status, 404);
});

test('a file that another process has stored again in the middle of a round is still known', async (t) => {
  const core = await createTestCore();
  t.after(() => core[Symbol.asyncDispose]());
  const { db, files, intake, pipeline } = core.rooms;
  const elsewhere = new Files({
    ...{ db, blobs: core.blobs, intake, pipeline },
    ...{ uploadLimitBytes: 10_000, now: Date.now },
  });
  const contents = new Map([randomBytes(1000), randomBytes(1000)].map((bytes) => [hashOf(bytes), bytes]));
  const store = async (by: Files, bytes: Buffer) =>
    by.storeUnpinned(await receive(core, bytes), 'text/plain');
  for (const bytes of contents.values()) await store(files, bytes);
  const claims = new Claims();
  const sweep = new Sweep({
    ...{ db, claims, graceMs: GRACE_MS, doomedMs: 0, now: () => Date.now() + 2 * GRACE_MS, log },
    // While the first one is removed, the other one is stored.
    blobs: {
      ...core.blobs,
      async remove(first) {
        for (const [hash, bytes] of contents) if (hash !== first) await store(elsewhere, bytes);
        await core.blobs.remove(first);
      },
    },
  });
  assert.equal(await sweep.round(), 1);
  const answers = await Promise.all([...contents.keys()].map((hash) => core.get(`/storage/raw/${hash}`)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404]);
});

// 4 CPU seconds.
test('a node with another database removes no file from a store that two share, until the other one is gone', async () => {
  await using stack = new AsyncDisposableStack();
  const { settings } = stack.use(await startTestS3());
  const spool = await mkdtemp(join(tmpdir(), 'skerry-spool-'));
  stack.defer(() => rm(spool, { recursive: true, force: true }));
  const store = await createS3BlobStore(settings, spool);
  const keep = async (core: TestCore, bytes: Buffer) =>
    core.rooms.files.store(await receive(core, bytes), 'text/plain', fieldsFor(bytes));
  const one = stack.use(await createTestCore({ blobs: store }));
  const [first, second] = [randomBytes(1_000), randomBytes(1_000)];
  await keep(one, first);
  assert.equal(await createSweep(one).round(), 0);
  const copy = stack.use(await createTestCore({ blobs: store }));
  assert.equal(await createSweep(copy).round(), 0, 'it knows nothing of the file, and leaves it');
  await keep(one, second);
  assert.equal(await createSweep(one).round(), 0);
  for (const bytes of [first, second])
    assert.deepEqual((await one.get(`/storage/raw/${hashOf(bytes)}`)).body, bytes);

  const later = { ...store.mark!, read: async () => ({ ...(await store.mark!.read())!, ageMs: 8_000_000 }) };
  const { db } = copy.rooms;
  assert.ok(await new SweepMark({ db, mark: later, log }).isOwn(), 'nobody has left a word for so long');
  assert.equal(await createSweep(one).round(), 0, 'the one that was away removes nothing now');
  assert.equal(await createSweep(copy).round(), 2);
});

test('pure: a word that the database knows is replaced now and then, and one of somebody else when nobody does that', () => {
  const own = ['b', 'a'];
  for (const [word, minutes, decision] of [
    ['b', 0, 'stays'],
    ['a', 9, 'stays'],
    ['b', 10, 'renew'],
    ['c', 0, 'of another node'],
    ['c', 119, 'of another node'],
    ['c', 120, 'renew'],
  ] as const)
    assert.equal(decideMark({ word, ageMs: minutes * 60_000 }, own), decision, `${word} ${minutes}`);
  assert.equal(decideMark(undefined, own), 'renew');
  // A store that does not say how old it is.
  assert.equal(decideMark({ word: 'c', ageMs: Number.NaN }, own), 'of another node');
});

test('the limit of a round holds, and rounds together go through everything', async (t) => {
  const core = await createTestCore();
  t.after(() => core[Symbol.asyncDispose]());
  for (let n = 0; n < 45; n++) await (await receive(core, Buffer.from(`orphan ${n}`))).keep();
  const sweep = createSweep(core, 2 * GRACE_MS, { examined: 20, removed: 8 });
  const rounds: number[] = [];
  for (let n = 0; n < 8; n++) rounds.push(await sweep.round());
  assert.ok(Math.max(...rounds) <= 8, `${rounds}`);
  assert.equal(
    rounds.reduce((sum, removed) => sum + removed),
    45,
  );
  assert.deepEqual(await core.blobs.list(undefined, 10), []);
  // A store that was opened anew sees the same.
  assert.deepEqual(await (await createDirectoryBlobStore(core.filesDir)).list(undefined, 10), []);
});

test('what waits to be removed does not hold up those behind it', async (t) => {
  const core = await createTestCore();
  t.after(() => core[Symbol.asyncDispose]());
  const orphans = 45;
  for (let n = 0; n < orphans; n++) await (await receive(core, Buffer.from(`orphan ${n}`))).keep();
  const { db, files } = core.rooms;
  let nowMs = Date.now() + 2 * GRACE_MS;
  const limits = { examined: 20, removed: 8 };
  const options = { db, blobs: core.blobs, claims: files.claims, now: () => nowMs, limits, log };
  const sweep = new Sweep({ ...options, graceMs: GRACE_MS, doomedMs: HOUR_MS });
  const rounds = async (count: number) => {
    let removed = 0;
    for (let n = 0; n < count; n++, nowMs += 60_000) removed += await sweep.round();
    return removed;
  };
  assert.equal(await rounds(8), 0);
  assert.equal((await db.selectFrom('doomed_blobs').select('hash').execute()).length, orphans);
  nowMs += HOUR_MS;
  assert.equal(await rounds(6), orphans);
});
