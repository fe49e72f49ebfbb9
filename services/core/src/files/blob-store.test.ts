import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import type { ItemHash } from '@skerry/protocol';
import { createDirectoryBlobStore } from './blob-store.ts';

const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' as ItemHash;

test('a blob is readable only when it was kept, under the hash of its bytes; leftovers of a crash are swept', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-blobs-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const store = await createDirectoryBlobStore(directory);
  const blob = await store.receive(Readable.from([Buffer.from('ab'), Buffer.from('c')]));
  assert.deepEqual([blob.hash, blob.sizeBytes], [ABC, 3]);
  assert.equal(await store.findSize(ABC), undefined);
  await blob.keep();
  assert.equal(await store.findSize(ABC), 3);
  assert.equal((await buffer(store.read(ABC))).toString(), 'abc');

  const failing = Readable.from(
    (async function* () {
      yield Buffer.from('half');
      throw new Error('the sender hung up');
    })(),
  );
  await assert.rejects(store.receive(failing), /hung up/);
  assert.deepEqual(await readdir(join(directory, 'incoming')), []);

  await writeFile(join(directory, 'incoming', 'left-by-a-crash'), 'x');
  await createDirectoryBlobStore(directory);
  assert.deepEqual(await readdir(join(directory, 'incoming')), []);
});
