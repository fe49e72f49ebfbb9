import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { killBuild } from '../testing/killed-build.ts';
import { openCache } from '../testing/play.ts';
import { BOOTSTRAP_MARKS } from './progress.ts';

/** From when packages are configured on, file systems are mounted inside the new root. */
test('a build that is killed at any step leaves nothing behind that matters, and the next one succeeds', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const cacheDir = await mkdtemp(join(tmpdir(), 'skerry-images-'));
  try {
    for (const { message } of BOOTSTRAP_MARKS) {
      await killBuild(cacheDir, message);
      console.log(`killed while ${message}: nothing of it is left`);
    }
    await openCache(cacheDir).ensure('debian:12', ({ message }) => console.log(message));
    const names = await readdir(join(cacheDir, 'images'));
    assert.deepEqual(
      names.filter((name) => name.startsWith('.build')),
      [],
    );
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
});
