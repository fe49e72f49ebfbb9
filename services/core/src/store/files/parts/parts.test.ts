import assert from 'node:assert/strict';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { BOUNDLESS } from '@skerry/database';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { MIGRATIONS } from '../../../testing/core.ts';
import type { Schema } from '../../schema.ts';
import { createS3Pieces } from '../s3/pieces.ts';
import { S3Client } from '../s3/request.ts';
import { createS3BlobStore } from '../s3/store.ts';
import { keepBlob } from '../testing/blob-suite.ts';
import { startTestS3, type TestS3 } from '../testing/s3-server.ts';
import { DirectoryPlace } from './directory-place.ts';
import { Parts, type Whole } from './parts.ts';
import type { PartsPlace } from './place.ts';
import { type Pieces, SharedPlace } from './shared-place.ts';

const HOUR_MS = 3_600_000;
/** So that files of a few bytes have several pieces. */
const PIECE_BYTES = 4;

const digit = (n: number) => n.toString(16).padStart(2, '0');
const wholeOf = (n: number, sizeBytes = 10): Whole => ({
  hash: digit(n).repeat(32),
  address: `0x${digit(n >> 2).repeat(20)}`,
  sizeBytes,
});
const nameOf = ({ hash, address, sizeBytes }: Whole) => `${hash}-${address}-${sizeBytes}`;
const bytesOf = (bytes: string) => Readable.from([Buffer.from(bytes)]);

async function append(parts: Parts, ...what: Parameters<Parts['append']>): Promise<number> {
  using _held = parts.hold(what[0]);
  return await parts.append(...what);
}

interface Fixture extends AsyncDisposable {
  /** As another process has it. */
  open(): PartsPlace;
  /** As if nothing had come of it since. */
  rest(name: string, sinceMs: number): Promise<void>;
}

function describeParts(where: string, start: () => Promise<Fixture>): void {
  describe(`files that come in parts, in ${where}`, () => {
    let fixture: Fixture;
    let parts: Parts;
    const open = (now = Date.now) => new Parts({ place: fixture.open(), now });
    beforeEach(async () => {
      fixture = await start();
      parts = open();
    });
    afterEach(() => fixture[Symbol.asyncDispose]());
    const send = (whole: Whole, offset: number, bytes: string) =>
      append(parts, whole, offset, bytesOf(bytes));

    test('a part goes on where the last one ended, also in another process; any other is not read', async () => {
      const whole = wholeOf(0);
      assert.equal(await parts.received(whole), 0);
      assert.equal(await send(whole, 0, 'abcd'), 4);
      parts = open();
      assert.equal(await parts.received(whole), 4);
      for (const offset of [0, 3, 5]) assert.equal(await send(whole, offset, 'XX'), 4);
      assert.equal(await send(whole, 4, 'efghij'), 10);
      assert.equal(await text(parts.read(whole)), 'abcdefghij');
      await parts.remove(whole);
      assert.equal(await parts.received(whole), 0);
    });

    test('what came before a connection broke is kept; more than was announced is refused', async () => {
      const whole = wholeOf(0);
      const broken = async function* () {
        yield Buffer.from('abc');
        throw new Error('gone');
      };
      await assert.rejects(append(parts, whole, 0, Readable.from(broken())), /gone/);
      assert.equal(await parts.received(whole), 3);
      const more = bytesOf('defghijk');
      await assert.rejects(append(parts, whole, 3, more), { code: 'FILE_TOO_LARGE' });
      assert.equal(more.destroyed, false, 'its sender can still be told');
      assert.equal(await parts.received(whole), 3);
    });

    test('a process that was frozen in the middle of a part goes on with it, after another one has: each byte is in its place', async () => {
      const whole = wholeOf(0);
      const source = new Readable({ read() {} });
      const frozen = append(parts, whole, 0, source);
      source.push('abcd');
      await until(
        'it has begun',
        () => parts.received(whole),
        (received) => received === 4,
      );
      parts = open();
      assert.equal(await send(whole, 4, 'efghij'), 10);
      source.push('efg');
      source.push(null);
      // It says how much there is, or how much it has written.
      assert.ok([7, 10].includes(await frozen));
      assert.equal(await text(parts.read(whole)), 'abcdefghij');
    });

    test('two parts of one file do not come at once', async () => {
      const source = new Readable({ read() {} });
      const first = append(parts, wholeOf(0), 0, source);
      await assert.rejects(send(wholeOf(0), 0, 'abc'), { code: 'OVERLOADED' });
      source.push('abc');
      source.push(null);
      assert.equal(await first, 3);
    });

    test('an address has four on their way, the node sixty-four; the one that rests longest makes room', async () => {
      for (let n = 0; n < 4; n++) await send(wholeOf(n), 0, 'a');
      await assert.rejects(send({ ...wholeOf(4), address: wholeOf(0).address }, 0, 'a'), {
        code: 'RATE_LIMITED',
      });
      for (let n = 4; n < 64; n++) await send(wholeOf(n), 0, 'a');
      await assert.rejects(send(wholeOf(64), 0, 'a'), { code: 'OVERLOADED' });
      await fixture.rest(nameOf(wholeOf(1)), Date.now() - HOUR_MS);
      assert.equal(await send(wholeOf(64), 0, 'a'), 1);
      assert.equal(await parts.received(wholeOf(1)), 0);
      assert.equal((await fixture.open().list()).length, 64);
      await assert.rejects(send(wholeOf(200, 17 * 1024 ** 3), 0, 'a'), { code: 'OVERLOADED' });
    });

    test('a client has eight on their way, whoever signed them; others and our own begin theirs', async () => {
      const begin = (n: number, client = by('a')) => append(parts, wholeOf(n), 0, bytesOf('a'), client);
      for (let n = 0; n < 32; n += 4) await begin(n);
      await assert.rejects(begin(32), { code: 'RATE_LIMITED' });
      await begin(36, by('b'));
      await begin(40, by('a', true));
      await parts.remove(wholeOf(0));
      await begin(32);
      await assert.rejects(begin(44), { code: 'RATE_LIMITED' });
    });

    const by = (key: string, isExempt = false) => ({ key, isExempt });

    test('what is announced takes no room from others, and what comes slowly makes room', async () => {
      let nowMs = Date.now();
      parts = open(() => nowMs);
      const huge = (n: number) => wholeOf(n, 4 * 1024 ** 3);
      const add = async (n: number, offset: number, client: string) => {
        await append(parts, huge(n), offset, bytesOf('a'), by(client));
        await fixture.rest(nameOf(huge(n)), nowMs);
      };
      for (let n = 0; n < 4; n++) await add(n, 0, 'greedy');
      await add(4, 0, 'gone');
      // A byte every nine minutes.
      for (let turn = 1; turn < 3; turn++) {
        nowMs += 9 * 60_000;
        for (let n = 0; n < 4; n++) await add(n, turn, 'greedy');
      }
      for (let n = 5; n < 56; n++) await add(n, 0, `${n}`);
      // Strangers have no more.
      await add(56, 0, '56');
      assert.equal(await parts.received(huge(4)), 0, 'what rests for longest goes first');
      await add(57, 0, '57');
      const left = await Promise.all([0, 1, 2, 3].map((n) => parts.received(huge(n))));
      assert.equal(left.filter((bytes) => bytes === 0).length, 1);
    });

    test('where there is no room, a client that has none takes that of the slowest of who has most; our own have a reserve', async () => {
      let nowMs = Date.now();
      parts = open(() => nowMs);
      const MIB = 1024 ** 2;
      const begin = (n: number, client: ReturnType<typeof by>) =>
        append(parts, wholeOf(n, 4 * MIB), 0, bytesOf('a'), client);
      for (let n = 0; n < 28; n += 4) await begin(n, by('greedy'));
      for (let n = 1; n <= 49; n++) await begin(100 + n, by(`${n}`));
      for (const client of ['greedy', '1'])
        await assert.rejects(begin(200, by(client)), { code: 'OVERLOADED' });
      nowMs += 60_000;
      for (let n = 0; n < 28; n += 4)
        if (n !== 8)
          await append(parts, wholeOf(n, 4 * MIB), 1, Readable.from([Buffer.alloc(MIB)]), by('greedy'));
      await begin(200, by('new'));
      assert.equal(await parts.received(wholeOf(8, 4 * MIB)), 0);
      const count = async () => (await fixture.open().list()).length;
      assert.equal(await count(), 56);
      for (let n = 0; n < 8; n++) await begin(210 + n, by('ours', true));
      assert.equal(await count(), 64);
    });

    test('a part that begins elsewhere takes nobody’s room', async () => {
      parts = open();
      for (let n = 0; n < 8; n += 4) await append(parts, wholeOf(n), 0, bytesOf('a'), by('greedy'));
      for (let n = 1; n <= 54; n++) await append(parts, wholeOf(100 + n), 0, bytesOf('a'), by(`${n}`));
      assert.equal(await append(parts, wholeOf(240), 1, bytesOf('a'), by('new')), 0);
      assert.equal((await fixture.open().list()).length, 56);
      assert.equal(await append(parts, wholeOf(240), 0, bytesOf('a'), by('new')), 1);
      assert.equal((await fixture.open().list()).length, 56);
    });

    test('what another process has makes room only where nothing came for long: it may be one of ours', async () => {
      const nowMs = Date.now();
      parts = open(() => nowMs);
      const other = open(() => nowMs);
      // Each of another address, as of another client.
      const theirs = Array.from({ length: 52 }, (_, n) => wholeOf(4 * n));
      const ours = [208, 209, 210, 211].map((n) => wholeOf(n));
      for (const one of ours) await append(other, one, 0, bytesOf('a'), by('ours', true));
      for (const [n, one] of theirs.entries()) await append(parts, one, 0, bytesOf('a'), by(`${n}`));
      const fresh = () => append(parts, wholeOf(240), 0, bytesOf('a'), by('new'));
      await assert.rejects(fresh(), { code: 'OVERLOADED' });
      // One client has two here; another process goes on with one, and with the other as well.
      await parts.remove(theirs[0]!);
      await append(parts, wholeOf(220), 0, bytesOf('a'), by('1'));
      for (const one of [theirs[1]!, wholeOf(220)]) await append(other, one, 1, bytesOf('b'), by('1'));
      await assert.rejects(fresh(), { code: 'OVERLOADED' });
      await fixture.rest(nameOf(wholeOf(220)), nowMs - HOUR_MS);
      assert.equal(await fresh(), 1);
      assert.deepEqual(await Promise.all(ours.map((one) => parts.received(one))), [1, 1, 1, 1]);
    });

    test('a file whose room went to another is ended, and begins anew', async () => {
      let nowMs = Date.now();
      parts = open(() => nowMs);
      const source = new Readable({ read() {} });
      const slow = append(parts, wholeOf(0), 0, source, by('slow'));
      const ended = assert.rejects(slow, { code: 'OVERLOADED' });
      source.push('abcd');
      await until(
        'it has begun',
        () => parts.received(wholeOf(0)),
        (received) => received === 4,
      );
      for (let n = 1; n < 56; n++) await append(parts, wholeOf(n), 0, bytesOf('a'), by(`${n}`));
      nowMs += 11 * 60_000;
      for (let n = 1; n < 56; n++) await fixture.rest(nameOf(wholeOf(n)), nowMs);
      await append(parts, wholeOf(60), 0, bytesOf('a'), by('new'));
      source.push('efg');
      await ended;
      assert.equal(await parts.received(wholeOf(0)), 0);
      assert.equal(await append(parts, wholeOf(0), 0, bytesOf('abcd'), by('slow')), 4);
    });

    test('what nobody sends on goes after a day', async () => {
      await send(wholeOf(0), 0, 'a');
      parts = open(() => Date.now() + 25 * HOUR_MS);
      await send(wholeOf(1), 0, 'a');
      assert.equal(await parts.received(wholeOf(0)), 0);
      assert.equal((await fixture.open().list()).length, 1);
      await open(() => Date.now() + 23 * HOUR_MS).tidy();
      assert.equal(await parts.received(wholeOf(1)), 1);
      // Also where nobody begins another one.
      await open(() => Date.now() + 25 * HOUR_MS).tidy();
      assert.deepEqual(await fixture.open().list(), []);
    });

    test('those of a clock that was set back make room as others do, and go as others do', async () => {
      for (let n = 0; n < 64; n++) await send(wholeOf(n), 0, 'a');
      parts = open(() => Date.now() - HOUR_MS);
      assert.equal(await send(wholeOf(64), 0, 'a'), 1);
      await open(() => Date.now() - 25 * HOUR_MS).tidy();
      assert.deepEqual(await fixture.open().list(), []);
    });
  });
}

describeParts('a directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-parts-'));
  return {
    open: () => new DirectoryPlace(join(directory, 'parts'), directory, BOUNDLESS),
    rest: (name, sinceMs) => utimes(join(directory, 'parts', name), sinceMs / 1_000, sinceMs / 1_000),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
});

describe('in an object store', () => {
  let s3: TestS3;
  let database: TestDatabase<Schema>;
  before(async () => {
    s3 = await startTestS3();
    database = await createTestDatabase({ migrations: MIGRATIONS, log: createLogger('test', 'silent') });
  });
  after(async () => {
    await database[Symbol.asyncDispose]();
    await s3[Symbol.asyncDispose]();
  });
  const openPlace = (pieces: Pieces = createS3Pieces(s3.settings)) =>
    new SharedPlace({ db: database.kysely, pieces, now: Date.now, pieceBytes: PIECE_BYTES });
  const clear = async () => {
    const place = openPlace();
    for (const { name } of await place.list()) await place.remove(name);
  };
  async function countObjects(): Promise<number> {
    const query = { 'list-type': '2', prefix: 'parts/' };
    const answer = await new S3Client(s3.settings).call({ method: 'GET', key: '', query });
    return (await text(answer)).split('<Key>').length - 1;
  }
  const countPieces = async () =>
    (await database.kysely.selectFrom('pieces_of_files').select('piece').execute()).length;

  describeParts('an object store that all processes reach', async () => ({
    open: openPlace,
    rest: async (name, written_ms) => {
      await database.kysely
        .updateTable('files_in_parts')
        .set({ written_ms })
        .where('name', '=', name)
        .execute();
    },
    [Symbol.asyncDispose]: clear,
  }));

  test('nothing is left in it of what was removed, also where the removal was cut off', async () => {
    const place = openPlace();
    await place.write('a', 0, bytesOf('abcdefghij'));
    assert.deepEqual([await countObjects(), await countPieces()], [1, 1]);
    await place.write('a', 10, bytesOf('klm'));
    assert.deepEqual([await countObjects(), await countPieces()], [2, 2]);
    const pieces = createS3Pieces(s3.settings);
    const failing = openPlace({ ...pieces, remove: () => Promise.reject(new Error('the process ended')) });
    await assert.rejects(failing.remove('a'), /ended/);
    assert.deepEqual([await place.received('a'), await countObjects()], [0, 2]);
    await place.write('b', 0, bytesOf('a'));
    assert.deepEqual([await countObjects(), await countPieces()], [1, 1]);
    await clear();
    assert.deepEqual([await countObjects(), await countPieces()], [0, 0]);
  });

  test('a piece that the store does not take is not part of the file, and goes with it', async () => {
    const pieces = createS3Pieces(s3.settings);
    const full = openPlace({ ...pieces, put: () => Promise.reject(new Error('full')) });
    await assert.rejects(full.write('a', 0, bytesOf('abcd')), /full/);
    assert.equal(await full.received('a'), 0);
    const place = openPlace();
    assert.equal(await place.write('a', 0, bytesOf('abcd')), 4);
    await clear();
    assert.deepEqual([await countObjects(), await countPieces()], [0, 0]);
  });

  test('many small parts do not fill the store with objects: beyond a number the file begins anew', async () => {
    const pieces = createS3Pieces(s3.settings);
    const options = { db: database.kysely, pieces, now: Date.now, piecesMax: 3 };
    const place = new SharedPlace(options);
    for (let at = 0; at < 3; at++) assert.equal(await place.write('a', at, bytesOf('x')), at + 1);
    await assert.rejects(place.write('a', 3, bytesOf('x')), { code: 'RATE_LIMITED' });
    assert.deepEqual([await place.received('a'), await countObjects(), await countPieces()], [0, 0, 0]);
  });

  test('where an object is lost, the file begins anew', async () => {
    const place = openPlace();
    await place.write('a', 0, bytesOf('abcd'));
    const [lost] = await database.kysely.selectFrom('pieces_of_files').select('piece').execute();
    await createS3Pieces(s3.settings).remove(lost!.piece);
    await assert.rejects(text(place.read('a')), { code: 'STORAGE_UNAVAILABLE' });
    assert.deepEqual([await place.received('a'), await countPieces()], [0, 0]);
  });

  test('the sweep, which goes through the blobs of the same bucket, does not meet them', async () => {
    const spool = await mkdtemp(join(tmpdir(), 'skerry-spool-'));
    try {
      const blobs = await createS3BlobStore(s3.settings, spool);
      await openPlace().write('a', 0, bytesOf('abcd'));
      const hash = await keepBlob(blobs, Buffer.from('a file'));
      assert.deepEqual(
        (await blobs.list(undefined, 10)).map((blob) => blob.hash),
        [hash],
      );
    } finally {
      await rm(spool, { recursive: true });
      await clear();
    }
  });
});
