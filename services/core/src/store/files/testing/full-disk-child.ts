import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { listen } from '@skerry/kit';
import { createTestCore, signers } from '../../../testing/core.ts';
import { createDirectoryBlobStore } from '../directory-store.ts';
import { hashOf, keepBlob } from './blob-suite.ts';

// Runs in a mount namespace of its own: the file system goes away with this process.
const directory = mkdtempSync(join(tmpdir(), 'skerry-full-'));
execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m,nr_inodes=40', 'tmpfs', directory]);
const free = () => statfsSync(directory).bfree;

const store = await createDirectoryBlobStore(directory);
const small = randomBytes(300_000);
const hash = await keepBlob(store, small);
const freeBefore = free();
for (let round = 0; round < 3; round++) {
  const tooMuch = Readable.from(Array.from({ length: 64 }, () => randomBytes(65_536)));
  await assert.rejects(store.receive(tooMuch, 100_000_000), { code: 'STORAGE_FULL' });
  assert.deepEqual(readdirSync(join(directory, 'incoming')), []);
  assert.equal(free(), freeBefore, 'not a block is lost');
}
assert.deepEqual(await buffer(await store.read(hash)), small);
const another = await keepBlob(store, randomBytes(400_000));
assert.ok(await store.find(another));

// The same through the node's door: 507 in our form, then it goes on.
const core = await createTestCore({ blobs: store, uploadLimitBytes: 100_000_000 });
const upload = (bytes: Buffer) => {
  const form = new FormData();
  form.set('address', signers.alice.address);
  form.set('signature', signers.alice.sign(hashOf(bytes)));
  form.set('file', new Blob([new Uint8Array(bytes)]));
  return form;
};
const url = `${await listen(core.api, '127.0.0.1', 0)}/api/v0/storage/store`;
const refused = await fetch(url, { method: 'POST', body: upload(randomBytes(3_000_000)) });
assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [507, 'STORAGE_FULL']);
assert.deepEqual(readdirSync(join(directory, 'incoming')), []);
assert.equal((await fetch(url, { method: 'POST', body: upload(randomBytes(100_000)) })).status, 200);
await core[Symbol.asyncDispose]();

// No inode is left for the directory of the name: the same answer, and nothing under the name.
const waiting = await store.receive(Readable.from([Buffer.from('waits for its name')]), 100);
await assert.rejects(
  async () => {
    for (let n = 0; n < 60; n++) await keepBlob(store, Buffer.from(`file ${n}`));
  },
  { code: 'STORAGE_FULL' },
);
await assert.rejects(waiting.keep(), { code: 'STORAGE_FULL' });
assert.equal(await store.find(waiting.hash), undefined);
await waiting.discard();
console.log('ok');
