import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLogger, listen } from '@skerry/kit';
import { type ItemHash, sha256Hex } from '@skerry/protocol';
import fc from 'fast-check';
import { createPeerFileSource } from '../../peers/sync/file-source.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { FileFetcher } from './fetcher.ts';
import { decideLost, LostFiles } from './lost.ts';

const log = createLogger('test', 'silent');
const signal = new AbortController().signal;

test('pure: round by round, what is lost is found and nothing else, however short the lists', () => {
  const file = fc.record({
    at: fc.nat(40),
    pinned: fc.constantFrom(0, 1, 2),
    kept: fc.constantFrom(0, 1, 2),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(file, { selector: ({ at }) => at }),
      fc.integer({ min: 1, max: 5 }),
      (all, limit) => {
        const sorted = all
          .map(({ at, ...sizes }) => ({ hash: String(at).padStart(2, '0') as ItemHash, ...sizes }))
          .sort((a, b) => (a.hash < b.hash ? -1 : 1));
        const listed = (which: 'pinned' | 'kept', after: string) =>
          sorted
            .filter((one) => one[which] > 0 && one.hash > after)
            .slice(0, limit)
            .map((one) => ({ hash: one.hash, sizeBytes: one[which] }));
        const found: string[] = [];
        for (let after: string | undefined = ''; after !== undefined; ) {
          const { lost, seen } = decideLost(listed('pinned', after), listed('kept', after), limit);
          found.push(...lost);
          assert.ok(seen === undefined || seen > after);
          after = seen;
        }
        const expected = sorted.filter(({ pinned, kept }) => pinned > 0 && pinned !== kept);
        assert.deepEqual(
          found,
          expected.map(({ hash }) => hash),
        );
      },
    ),
  );
});

const receive = (core: TestCore, bytes: Buffer) => core.rooms.files.receive(Readable.from([bytes]));

async function store(core: TestCore, bytes: Buffer): Promise<void> {
  const address = signers.alice.address;
  const signature = signers.alice.sign(sha256Hex(bytes));
  await core.rooms.files.store(await receive(core, bytes), 'text/plain', {
    ...{ address, signature, channel: 'files', tags: [] },
  });
}

test('files whose bytes are gone or cut off come again from another node; those that nobody has make way', async () => {
  await using holder = await createTestCore();
  await using core = await createTestCore();
  const [kept, gone, cut, nowhere] = Array.from({ length: 4 }, () => randomBytes(1_000)) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  for (const bytes of [kept, gone, cut, nowhere]) await store(core, bytes);
  for (const bytes of [gone, cut])
    await holder.rooms.files.storeUnpinned(await receive(holder, bytes), 'text/plain');
  for (const bytes of [gone, nowhere]) await core.blobs.remove(sha256Hex(bytes) as ItemHash);
  const name = sha256Hex(cut);
  await truncate(join(core.filesDir, name.slice(0, 2), name.slice(2, 4), name), 10);

  const lost = new LostFiles({ db: core.rooms.db, blobs: core.blobs, examined: 2, log });
  while (await lost.round());
  for (let round = 0; round < 4; round++) await lost.round();
  assert.deepEqual([...lost.names].sort(), [gone, cut, nowhere].map((bytes) => sha256Hex(bytes)).sort());

  assert.equal((await core.get(`/storage/raw/${name}`)).status, 404, 'what is cut off is not given out');

  let nowMs = Date.now();
  const sources = [createPeerFileSource(await listen(holder.api, '127.0.0.1', 0))];
  const fetcher = new FileFetcher({ ...core.rooms, sources, lost, now: () => nowMs, log });
  const look = async () => {
    await fetcher.look(signal);
    await fetcher.idle();
    nowMs += 600_000;
  };
  await look();
  for (const bytes of [kept, gone, cut]) {
    const { status, body } = await core.get(`/storage/raw/${sha256Hex(bytes)}`);
    assert.deepEqual([status, Buffer.compare(body, bytes)], [200, 0]);
  }
  assert.deepEqual(lost.names, [sha256Hex(nowhere)]);
  for (let turn = 0; turn < 4; turn++) await look();
  assert.deepEqual(lost.names, []);
  while (await lost.round());
  for (let round = 0; round < 4; round++) await lost.round();
  assert.deepEqual(lost.names, [sha256Hex(nowhere)]);
});
