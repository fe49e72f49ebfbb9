import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import type { ItemHash } from '@skerry/protocol';
import type { BlobStore } from '../blob-store.ts';

export const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex') as ItemHash;

export interface StoreUnderTest extends AsyncDisposable {
  readonly store: BlobStore;
  /** Where files are while they are being received. */
  readonly spoolDirectory: string;
}

const LIMIT = 64 * 1024 * 1024;

/** Receives and keeps bytes that come in pieces of this length. */
export async function keepBlob(store: BlobStore, bytes: Buffer, pieceBytes = 60_001): Promise<ItemHash> {
  const pieces = function* () {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  };
  const blob = await store.receive(Readable.from(pieces()), LIMIT);
  await blob.keep();
  await blob.discard();
  return blob.hash;
}

/** What every blob store does. `open` gives an empty one. */
export function describeBlobStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`blobs in ${name}`, () => {
    test('bytes are readable only once kept, under the hash of them, whole and by range', async () => {
      await using under = await open();
      const { store } = under;
      for (const size of [0, 1, 3_500_000]) {
        const bytes = randomBytes(size);
        const hash = hashOf(bytes);
        const blob = await store.receive(Readable.from(size === 0 ? [] : [bytes]), LIMIT);
        assert.deepEqual([blob.hash, blob.sizeBytes], [hash, size]);
        assert.equal(await store.find(hash), undefined);
        await assert.rejects(store.read(hash), { code: 'FILE_NOT_FOUND' });
        const before = Date.now();
        await blob.keep();
        await blob.keep();
        await blob.discard();
        const kept = await store.find(hash);
        assert.deepEqual([kept?.hash, kept?.sizeBytes], [hash, size]);
        // Object stores speak of whole seconds.
        assert.ok(Math.abs(kept!.keptAtMs - before) < 60_000, `kept at ${kept!.keptAtMs}, not ${before}`);
        assert.deepEqual(await buffer(await store.read(hash)), bytes);
        // The S3 server of the tests reads "0-0" as "0-": the range of one byte is the last one here.
        for (const [first, last] of [
          [0, 1],
          [1, 99_999],
          [size - 1, size - 1],
          [0, size - 1],
        ] as const) {
          if (first < 0 || last >= size || first > last) continue;
          assert.deepEqual(
            await buffer(await store.read(hash, { first, last })),
            bytes.subarray(first, last + 1),
          );
        }
      }
      assert.deepEqual(await readdir(under.spoolDirectory), []);
    });

    test('a source that fails, is destroyed or gives too much leaves nothing behind', async () => {
      await using under = await open();
      const failing = Readable.from(
        (async function* () {
          yield randomBytes(2_000_000);
          throw new Error('the sender hung up');
        })(),
      );
      await assert.rejects(under.store.receive(failing, LIMIT), /hung up/);
      const cut = new PassThrough();
      cut.write('half');
      const receiving = under.store.receive(cut, LIMIT);
      cut.destroy();
      await assert.rejects(receiving, { code: 'ERR_STREAM_PREMATURE_CLOSE' });
      const broken = new PassThrough();
      broken.destroy(new Error('broken before anybody looked'));
      await assert.rejects(under.store.receive(broken, LIMIT), /broken before/);
      const pieces = [randomBytes(1_000_000), randomBytes(1_000_000)];
      await assert.rejects(under.store.receive(Readable.from(pieces), 1_999_999), { code: 'FILE_TOO_LARGE' });
      const exact = await under.store.receive(Readable.from(pieces), 2_000_000);
      await exact.discard();
      assert.equal(await under.store.find(exact.hash), undefined);
      assert.deepEqual(await readdir(under.spoolDirectory), []);
    });

    test('kept again, a blob is young again; removed, it is gone, also twice; who reads it reads on', async () => {
      await using under = await open();
      const { store } = under;
      const bytes = randomBytes(3_000_000);
      const hash = await keepBlob(store, bytes);
      assert.equal(await keepBlob(store, bytes), hash);
      const reading = await store.read(hash);
      await store.remove(hash);
      await store.remove(hash);
      assert.deepEqual(await buffer(reading), bytes);
      assert.equal(await store.find(hash), undefined);
      assert.equal(await keepBlob(store, bytes), hash);
      assert.deepEqual(await buffer(await store.read(hash)), bytes);
    });

    test('a listing goes through everything once, in order, in pages of any size', async () => {
      await using under = await open();
      const { store } = under;
      assert.deepEqual(await store.list(undefined, 10), []);
      const hashes: ItemHash[] = [];
      for (let n = 0; n < 40; n++) hashes.push(await keepBlob(store, Buffer.from(`blob ${n}`)));
      hashes.sort();
      for (const limit of [1, 7, 40, 1000]) {
        const found: ItemHash[] = [];
        for (;;) {
          const page = await store.list(found.at(-1), limit);
          assert.ok(page.length <= limit);
          for (const { hash, sizeBytes } of page) {
            assert.ok(sizeBytes >= 6 && sizeBytes <= 7);
            found.push(hash);
          }
          if (page.length === 0) break;
        }
        assert.deepEqual(found, hashes);
      }
      await store.remove(hashes[3]!);
      assert.deepEqual(
        (await store.list(hashes[2], 1)).map((blob) => blob.hash),
        [hashes[4]],
      );
      assert.deepEqual(
        (await store.list('f'.repeat(64) as ItemHash, 5)).map((blob) => blob.hash),
        [],
      );
    });

    test('many at once, the same bytes among them', async () => {
      await using under = await open();
      const { store } = under;
      const all = Array.from({ length: 24 }, (_, n) => Buffer.alloc(150_000, n % 8));
      const hashes = await Promise.all(all.map((bytes) => keepBlob(store, bytes, 10_000)));
      assert.deepEqual(hashes, all.map(hashOf));
      const read = await Promise.all(hashes.map(async (hash) => buffer(await store.read(hash))));
      assert.deepEqual(read, all);
      assert.equal((await store.list(undefined, 100)).length, 8);
      assert.deepEqual(await readdir(under.spoolDirectory), []);
    });
  });
}
