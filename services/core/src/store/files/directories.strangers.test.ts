import assert from 'node:assert/strict';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createDirectoryBlobStore } from './directory-store.ts';
import { hashOf, keepBlob } from './testing/blob-suite.ts';

test('F9: a directory that somebody else made and did not sync is synced before a file in it is acknowledged', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-files-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const store = await createDirectoryBlobStore(directory);
  const bytes = Buffer.from('abc');
  const hash = hashOf(bytes);
  // As a process leaves it that dies between making the directory and syncing it.
  await mkdir(join(directory, hash.slice(0, 2), hash.slice(2, 4)), { recursive: true });
  const handle = await open(directory);
  const sync = t.mock.method(Object.getPrototypeOf(handle) as { sync(): Promise<void> }, 'sync');
  await handle.close();
  await keepBlob(store, bytes);
  // The file, the root, the two directories.
  assert.equal(sync.mock.callCount(), 4);
  await keepBlob(store, bytes);
  assert.equal(sync.mock.callCount(), 6, 'what is known to be durable is not synced again');
});
