import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLogger, listen } from '@skerry/kit';
import { type ItemHash, sha256Hex } from '@skerry/protocol';
import fc from 'fast-check';
import { sql } from 'kysely';
import { createPeerFileSource } from '../../../peers/sync/file-source.ts';
import { createTestCore, signers, type TestCore } from '../../../testing/core.ts';
import { FileFetcher } from '../fetcher.ts';
import { LostFiles } from '../lost.ts';
import { DAMAGED } from './damaged.ts';
import { dropCached } from './page-cache.ts';
import { Scrub, type ScrubOptions } from './scrub.ts';
import { formatPass, heedClock, isDue, nextPass, parsePass } from './scrub-pass.ts';

const log = createLogger('test', 'silent');
const { signal } = new AbortController();
const DAY_MS = 86_400_000;
const DAYS = 30;
const MIB = 1024 ** 2;

const pathOf = ({ filesDir }: TestCore, hash: string) =>
  join(filesDir, hash.slice(0, 2), hash.slice(2, 4), hash);

async function store(core: TestCore, bytes: Buffer): Promise<ItemHash> {
  const hash = sha256Hex(bytes) as ItemHash;
  const blob = await core.rooms.files.receive(Readable.from([bytes]));
  const [address, signature] = [signers.alice.address, signers.alice.sign(hash)];
  await core.rooms.files.store(blob, 'text/plain', { address, signature, channel: 'files', tags: [] });
  return hash;
}

/** One bit of it is another one, as a disk may have it; its size and its times stay. */
async function damage(core: TestCore, hash: string): Promise<void> {
  const file = await open(pathOf(core, hash), 'r+');
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, 500);
  await file.write(Buffer.from([buffer[0]! ^ 1]), 0, 1, 500);
  await file.close();
}

function scrubOf(core: TestCore, more: Partial<ScrubOptions> = {}) {
  const { db, files } = core.rooms;
  const clock = { ms: Date.now(), restedMs: 0 };
  const lost = new LostFiles({ db, blobs: core.blobs, log });
  const scrub = new Scrub({
    ...{ db, blobs: core.blobs, claims: files.claims, lost, directory: core.filesDir, log },
    ...{ days: DAYS, mibPerSecond: 2, now: () => clock.ms, restoreBlock: async () => {} },
    rest: async (ms) => {
      clock.restedMs += ms;
      return true;
    },
    ...more,
  });
  return { scrub, lost, clock };
}

test('a bit that a disk changed is found in its turn, served to nobody, and the file comes again from another node', async () => {
  await using holder = await createTestCore();
  await using core = await createTestCore();
  const contents = Array.from({ length: 6 }, () => randomBytes(MIB / 2));
  const hashes = [];
  for (const bytes of contents) hashes.push(await store(core, bytes));
  const bytes = contents[0]!;
  const [hash] = hashes as [ItemHash];
  await holder.rooms.files.storeUnpinned(
    await holder.rooms.files.receive(Readable.from([bytes])),
    'text/plain',
  );
  const { scrub, lost, clock } = scrubOf(core);
  await scrub.round(signal);
  await damage(core, hash);
  clock.ms += DAYS * DAY_MS;
  await scrub.round(signal);
  assert.deepEqual([scrub.counts.files, scrub.counts.damaged], [6, 1]);
  assert.deepEqual(await readdir(join(core.filesDir, DAMAGED)), [hash]);
  assert.equal((await core.get(`/storage/raw/${hash}`)).status, 404);
  // All of it once, and what is damaged once more.
  const least = (7 * MIB * 1_000) / 2 / (2 * MIB);
  assert.ok(clock.restedMs >= least - 1, `${clock.restedMs} ms for ${least}`);

  const sources = [createPeerFileSource(await listen(holder.api, '127.0.0.1', 0))];
  const fetcher = new FileFetcher({ ...core.rooms, sources, lost, log });
  assert.deepEqual(lost.names, [hash]);
  await fetcher.look(signal);
  await fetcher.idle();
  await scrub.round(signal);
  assert.deepEqual(await readdir(join(core.filesDir, DAMAGED)), []);
  const { status, body } = await core.get(`/storage/raw/${hash}`);
  assert.deepEqual([status, Buffer.compare(body, bytes)], [200, 0]);
});

test('a damaged file that nobody keeps is removed; a damaged block of IPFS is asked for; one that nobody has stays aside', async () => {
  await using core = await createTestCore();
  const [free, block, kept] = Array.from({ length: 3 }, () => randomBytes(1_000)) as [Buffer, Buffer, Buffer];
  const names = {
    free: sha256Hex(free) as ItemHash,
    block: sha256Hex(block) as ItemHash,
    kept: await store(core, kept),
  };
  for (const bytes of [free, block]) await (await core.blobs.receive(Readable.from([bytes]), 1_000)).keep();
  await sql`insert into ipfs_dags (root, complete, touched_ms) values ('a root', true, 0)`.execute(
    core.rooms.db,
  );
  await sql`insert into ipfs_blocks (root, block) values ('a root', decode(${names.block}, 'hex'))`.execute(
    core.rooms.db,
  );
  const asked: string[] = [];
  const { scrub, clock } = scrubOf(core, {
    async restoreBlock(hash) {
      asked.push(hash);
      await (await core.blobs.receive(Readable.from([block]), 1_000)).keep();
    },
  });
  await scrub.round(signal);
  for (const hash of Object.values(names)) await damage(core, hash);
  clock.ms += DAYS * DAY_MS;
  await scrub.round(signal);
  assert.deepEqual(asked, [names.block]);
  assert.equal(scrub.counts.damaged, 3);
  assert.deepEqual(await readdir(join(core.filesDir, DAMAGED)), [names.kept]);
  assert.equal(await core.blobs.find(names.free), undefined);
  assert.ok(await core.blobs.find(names.block));
});

test('a disk that damages one file after another has no more put aside than a few', async () => {
  await using core = await createTestCore();
  const hashes = [];
  for (let n = 0; n < 12; n++) hashes.push(await store(core, randomBytes(1_000)));
  const { scrub, clock } = scrubOf(core);
  await scrub.round(signal);
  for (const hash of hashes) await damage(core, hash);
  clock.ms += DAYS * DAY_MS;
  await scrub.round(signal);
  await scrub.round(signal);
  assert.equal((await readdir(join(core.filesDir, DAMAGED))).length, 8);
  clock.ms += 3_600_000;
  await scrub.round(signal);
  assert.equal((await readdir(join(core.filesDir, DAMAGED))).length, 12);
});

test('a damaged file that another process stores anew while it is read again stays where it is, and nobody waits to store it', async () => {
  await using core = await createTestCore();
  const bytes = randomBytes(MIB);
  const hash = await store(core, bytes);
  let reads = 0;
  const { scrub, clock } = scrubOf(core, {
    blobs: {
      ...core.blobs,
      read: (of) => {
        reads++;
        return core.blobs.read(of);
      },
    },
    async rest(ms) {
      if (reads === 2 && ms > 0) {
        reads++;
        using claim = core.rooms.files.claims.tryTake(hash);
        assert.ok(claim);
        // As another process does, which knows nothing of claims of this one.
        await (await core.blobs.receive(Readable.from([bytes]), MIB)).keep();
      }
      return true;
    },
  });
  await scrub.round(signal);
  await damage(core, hash);
  clock.ms += DAYS * DAY_MS;
  await scrub.round(signal);
  assert.deepEqual([reads, scrub.counts.damaged], [3, 0]);
  const { status, body } = await core.get(`/storage/raw/${hash}`);
  assert.deepEqual([status, Buffer.compare(body, bytes)], [200, 0]);
  assert.deepEqual(await readdir(join(core.filesDir, DAMAGED)), []);
});

test('a file that is damaged in the memory alone stays where it is: it is read from the disk before it is put aside', async () => {
  await using core = await createTestCore();
  const hash = await store(core, randomBytes(1_000));
  const dropped: string[] = [];
  const { scrub, clock } = scrubOf(core, {
    async drop(path) {
      dropped.push(path);
      await dropCached(path);
      // As the disk has it: what was damaged is well again.
      await damage(core, hash);
    },
  });
  await scrub.round(signal);
  await damage(core, hash);
  clock.ms += DAYS * DAY_MS;
  await scrub.round(signal);
  assert.deepEqual([dropped, scrub.counts.damaged], [[pathOf(core, hash)], 0]);
  assert.equal((await core.get(`/storage/raw/${hash}`)).status, 200);
  await assert.rejects(dropCached(join(core.filesDir, 'nowhere')));
});

test('a damaged file is put aside, too, where nothing can be dropped from the memory', async () => {
  await using core = await createTestCore();
  const hash = await store(core, randomBytes(1_000));
  const { scrub, clock } = scrubOf(core, { drop: () => Promise.reject(new Error('no dd here')) });
  await scrub.round(signal);
  await damage(core, hash);
  clock.ms += DAYS * DAY_MS;
  await scrub.round(signal);
  assert.equal(scrub.counts.damaged, 1);
});

test('what cannot be opened is passed over, and what cannot be put aside is not read again for an hour', async () => {
  await using core = await createTestCore();
  const hashes = [];
  for (let n = 0; n < 3; n++) hashes.push(await store(core, randomBytes(1_000)));
  const { scrub, clock } = scrubOf(core);
  await scrub.round(signal);
  const [first, second] = hashes.sort() as [ItemHash, ItemHash];
  await rm(pathOf(core, first));
  await mkdir(pathOf(core, first));
  clock.ms += DAYS * DAY_MS;
  await scrub.round(signal);
  assert.equal(scrub.counts.files, 2);

  await damage(core, second);
  await symlink('nowhere', join(core.filesDir, DAMAGED));
  clock.ms += DAYS * DAY_MS;
  // The next pass begins in a round of its own.
  const again = scrubOf(core, { now: () => clock.ms });
  await again.scrub.round(signal);
  await again.scrub.round(signal);
  const { bytes } = again.scrub.counts;
  clock.ms += 60_000;
  await again.scrub.round(signal);
  assert.equal(again.scrub.counts.bytes, bytes);
  await rm(join(core.filesDir, DAMAGED));
  clock.ms += 3_600_000;
  await again.scrub.round(signal);
  assert.deepEqual([again.scrub.counts.damaged, again.scrub.counts.files], [1, 2]);
});

test('a disk that gives no more of a file holds nobody up who ends the scrub', async () => {
  await using core = await createTestCore();
  await store(core, randomBytes(1_000));
  const end = new AbortController();
  const { scrub, clock } = scrubOf(core, {
    blobs: {
      ...core.blobs,
      read: async () =>
        new Readable({
          read() {
            end.abort();
          },
        }),
    },
  });
  await scrub.round(end.signal);
  clock.ms += DAYS * DAY_MS;
  await scrub.round(end.signal);
  assert.equal(scrub.counts.files, 0);
});

test('what was read is not read again after a kill, and the turns of files are spread over the days', async () => {
  await using core = await createTestCore();
  for (let n = 0; n < 20; n++) await store(core, randomBytes(1_000));
  const first = scrubOf(core);
  await first.scrub.round(signal);
  first.clock.ms += (DAYS / 2) * DAY_MS;
  await first.scrub.round(signal);
  const half = first.scrub.counts.files;
  assert.ok(half > 0 && half < 20, `${half} of 20`);
  const second = scrubOf(core);
  second.clock.ms = first.clock.ms;
  await second.scrub.round(signal);
  assert.equal(second.scrub.counts.files, 0);
  second.clock.ms += (DAYS / 2) * DAY_MS;
  await second.scrub.round(signal);
  assert.equal(second.scrub.counts.files, 20 - half);
  second.clock.ms += DAYS * DAY_MS;
  await second.scrub.round(signal);
  assert.equal(second.scrub.counts.files, 40 - half);
  // What somebody broke is no pass, and begins anew.
  await mkdir(core.filesDir, { recursive: true });
  await writeFile(join(core.filesDir, 'scrub.json'), '{"after":"../..","since_ms":1}');
  const third = scrubOf(core);
  third.clock.ms = second.clock.ms;
  await third.scrub.round(signal);
  assert.equal(third.scrub.counts.files, 0);
});

test('pure: a clock that is set back changes nothing of what is done, and nobody waits longer than a period', () => {
  const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
  fc.assert(
    fc.property(
      hex,
      fc.nat(),
      fc.nat(),
      fc.integer({ min: 1, max: 1e9 }),
      (after, sinceMs, nowMs, periodMs) => {
        const pass = { after, sinceMs };
        assert.deepEqual(parsePass(formatPass(pass)), pass);
        const heeded = heedClock(pass, nowMs, periodMs);
        assert.ok(heeded.sinceMs <= Math.max(nowMs, sinceMs) && heeded.after === after);
        if (sinceMs > nowMs) assert.ok(nowMs - heeded.sinceMs <= periodMs);
        assert.ok(isDue(after, heeded, heeded.sinceMs + periodMs, periodMs));
        assert.ok(nextPass(heeded, heeded.sinceMs + periodMs, periodMs));
      },
    ),
  );
});
