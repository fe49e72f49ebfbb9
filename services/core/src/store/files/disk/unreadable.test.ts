import assert from 'node:assert/strict';
import fsPromises, { readdir, rename, rm, symlink } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { getSystemErrorName } from 'node:util';
import { createLogger } from '@skerry/kit';
import { type ItemHash, sha256Hex } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../../testing/core.ts';
import { LostFiles } from '../lost.ts';
import { Sweep } from '../sweep.ts';
import { DAMAGED } from './damaged.ts';
import { Scrub } from './scrub.ts';

const { signal } = new AbortController();
const log = createLogger('test', 'silent');
const DAY_MS = 86_400_000;
const EIO = 5;
/** Linux: "Structure needs cleaning", of an inode that makes no sense. */
const EUCLEAN = 117;

async function store(core: TestCore, bytes: Buffer): Promise<ItemHash> {
  const hash = sha256Hex(bytes) as ItemHash;
  const [address, signature] = [signers.alice.address, signers.alice.sign(hash)];
  const blob = await core.rooms.files.receive(Readable.from([bytes]));
  await core.rooms.files.store(blob, 'text/plain', { address, signature, channel: 'files', tags: [] });
  return hash;
}

async function storeSome(core: TestCore): Promise<ItemHash[]> {
  const hashes = [];
  for (let n = 0; n < 6; n++) hashes.push(await store(core, Buffer.from(`file ${n}`)));
  return hashes.sort();
}

/** As a disk fails at these paths: all that is asked of them, and of nothing else. */
function failAt(
  t: TestContext,
  errno: number,
  name: 'readdir' | 'stat' | 'open',
  isOne: (path: string) => boolean,
) {
  const real = fsPromises[name] as (...parameters: unknown[]) => unknown;
  const mocked = t.mock.method(fsPromises, name, async (...parameters: unknown[]) => {
    if (!isOne(String(parameters[0]))) return real(...parameters);
    const code = getSystemErrorName(-errno);
    throw Object.assign(new Error(`${code}, ${name}`), { errno: -errno, code });
  });
  syncBuiltinESMExports();
  return () => {
    mocked.mock.restore();
    syncBuiltinESMExports();
  };
}

function scrubOf(core: TestCore, lost: LostFiles) {
  const clock = { ms: Date.now() };
  const scrub = new Scrub({
    ...{ db: core.rooms.db, blobs: core.blobs, claims: core.rooms.files.claims, lost, log },
    ...{ directory: core.filesDir, days: 30, mibPerSecond: 1_000, now: () => clock.ms },
    ...{ rest: async () => true, restoreBlock: async () => {} },
  });
  return { scrub, clock };
}

const lostOf = ({ rooms, blobs }: TestCore) => new LostFiles({ db: rooms.db, blobs, log });

/** A pass through all of them, of which the last round would begin another one. */
async function passOf(core: TestCore, lost = lostOf(core)) {
  const { scrub, clock } = scrubOf(core, lost);
  await rm(join(core.filesDir, 'scrub.json'), { force: true });
  await scrub.round(signal);
  clock.ms += 29.999 * DAY_MS;
  await scrub.round(signal);
  return scrub;
}

test('a directory of files that the disk cannot read ends neither reading again, nor the sweep, and makes no file a lost one', async (t) => {
  await using core = await createTestCore();
  const hashes = await storeSome(core);
  const first = hashes[0]!;
  const free = Buffer.from('nobody keeps it');
  await (await core.blobs.receive(Readable.from([free]), 100)).keep();
  const inner = join(core.filesDir, first.slice(0, 2), first.slice(2, 4));
  const lost = lostOf(core);
  const end = failAt(t, EIO, 'readdir', (path) => path === inner);
  t.after(end);
  await assert.rejects(readdir(inner), { code: 'EIO' });
  const scrub = await passOf(core, lost);
  assert.deepEqual([scrub.counts.files, scrub.counts.damaged], [6, 0], 'five, and the one that nobody keeps');
  await lost.round();
  assert.deepEqual(lost.names, []);
  const nowMs = Date.now() + DAY_MS;
  const { db, files } = core.rooms;
  const sweep = new Sweep({
    ...{ db, blobs: core.blobs, claims: files.claims, graceMs: 0, now: () => nowMs, log, doomedMs: 0 },
  });
  await sweep.round();
  await sweep.round();
  assert.equal(await core.blobs.find(sha256Hex(free) as ItemHash), undefined);
});

test('a link to itself in the place of a directory of files holds up nothing behind it', async () => {
  await using core = await createTestCore();
  const first = (await storeSome(core))[0]!;
  const outer = join(core.filesDir, first.slice(0, 2));
  await rename(outer, `${outer}.moved`);
  await symlink(outer, outer);
  assert.equal((await passOf(core)).counts.files, 5);
});

test('a file that makes no sense to the file system is put aside, and passed over where even its size cannot be told', async (t) => {
  await using core = await createTestCore();
  const hashes = await storeSome(core);
  const isFirst = (path: string) => path.endsWith(`/${hashes[0]}`);
  const endOpen = failAt(t, EUCLEAN, 'open', isFirst);
  const endStat = failAt(t, EUCLEAN, 'stat', isFirst);
  assert.deepEqual((await passOf(core)).counts.files, 5);
  endStat();
  endOpen();
  const again = failAt(t, EUCLEAN, 'open', isFirst);
  t.after(again);
  const { counts } = await passOf(core);
  assert.deepEqual([counts.files, counts.damaged], [6, 1]);
  assert.deepEqual(await readdir(join(core.filesDir, DAMAGED)), [hashes[0]]);
});

test('a disk of which no directory can be read has them tried again an hour later, and none is taken for read', async (t) => {
  await using core = await createTestCore();
  for (let n = 0; n < 12; n++) await store(core, Buffer.from(`one of many ${n}`));
  const { scrub, clock } = scrubOf(core, lostOf(core));
  const end = failAt(t, EIO, 'readdir', (path) => /\/[0-9a-f]{2}$/.test(path));
  t.after(end);
  await scrub.round(signal);
  end();
  clock.ms += 60_000;
  let asked = 0;
  t.mock.method(core.blobs, 'list', async () => {
    asked++;
    return [];
  });
  await scrub.round(signal);
  assert.equal(asked, 0, 'it rests');
  t.mock.restoreAll();
  clock.ms += 29.999 * DAY_MS;
  await scrub.round(signal);
  assert.equal(scrub.counts.files, 12);
});
