import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createDirectoryBlobStore } from './directory-store.ts';
import { describeBlobStore, keepBlob } from './testing/blob-suite.ts';

const createDirectory = () => mkdtemp(join(tmpdir(), 'skerry-blobs-'));

describeBlobStore('a directory', async () => {
  const directory = await createDirectory();
  return {
    store: await createDirectoryBlobStore(directory),
    spoolDirectory: join(directory, 'incoming'),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
});

test('what a crash left half-received is swept at the start; what is no blob is neither listed nor touched', async (t) => {
  const directory = await createDirectory();
  t.after(() => rm(directory, { recursive: true, force: true }));
  const hash = await keepBlob(await createDirectoryBlobStore(directory), Buffer.from('abc'));
  await writeFile(join(directory, 'incoming', 'left-by-a-crash'), 'x');
  await mkdir(join(directory, 'lost+found'));
  await writeFile(join(directory, hash.slice(0, 2), 'note.txt'), 'x');
  const store = await createDirectoryBlobStore(directory);
  assert.deepEqual(await readdir(join(directory, 'incoming')), []);
  assert.deepEqual(
    (await store.list(undefined, 10)).map((blob) => blob.hash),
    [hash],
  );
  assert.ok((await readdir(directory)).includes('lost+found'));
});

test('a path that is no directory is an error of the node, not "not found"', async (t) => {
  const directory = await createDirectory();
  t.after(() => rm(directory, { recursive: true, force: true }));
  const store = await createDirectoryBlobStore(directory);
  const blob = await store.receive(Readable.from([Buffer.from('abc')]), 10);
  await writeFile(join(directory, blob.hash.slice(0, 2)), 'in the way');
  await assert.rejects(blob.keep(), { code: 'ENOTDIR' });
  await assert.rejects(store.find(blob.hash), { code: 'ENOTDIR' });
});

test('a full disk: STORAGE_FULL, nothing partial, and the next smaller file is taken', async () => {
  // A real, tiny file system of its own, in a mount namespace that ends with the child (as root here, else as a mapped one).
  const child = fileURLToPath(new URL('./testing/full-disk-child.ts', import.meta.url));
  const namespace = process.geteuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount'];
  const { stdout } = await promisify(execFile)('unshare', [...namespace, '--', process.execPath, child]);
  assert.equal(stdout.trim(), 'ok');
});
