import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { acquireLock } from '@skerry/kit';
import { killBuild } from '../testing/killed-build.ts';
import { findCacheDir, openCache } from '../testing/play.ts';
import { buildPrefixOf, IMAGE_FILES, type Image, lockNameOf } from './image.ts';

/** `npm run soak -- killed-builds` kills builds that have come further. */
test('a build that is killed leaves nothing behind that matters, and the next one succeeds', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const cacheDir = await mkdtemp(join(tmpdir(), 'skerry-images-'));
  try {
    await killBuild(cacheDir, 'reading the list of packages');

    const percents: number[] = [];
    const images = openCache(cacheDir);
    const [image, same] = await Promise.all([
      images.ensure('debian:12', ({ percent }) => percents.push(percent)),
      images.ensure('debian:12', () => {}),
    ]);
    assert.equal(image.buildId, same.buildId, 'two who ask at the same time share one build');
    assert.ok(percents.length > 5);
    assert.deepEqual(
      percents,
      percents.toSorted((one, other) => one - other),
    );
    assert.deepEqual(
      (await readdir(image.directory)).toSorted(),
      [...Object.values(IMAGE_FILES), 'manifest.json'].toSorted(),
    );
    assert.deepEqual(
      (await readdir(join(cacheDir, 'images'))).filter((name) => name.startsWith('.build')),
      [],
    );
    assert.equal((await images.ensure('debian:12', () => {})).buildId, image.buildId, 'it is kept');
    await keep(image);
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
});

/** Puts the image where the tests that boot machines look for it, unless there is one: a build takes as long as several boots. */
async function keep({ directory, name }: Image): Promise<void> {
  const cacheDir = findCacheDir();
  const images = join(cacheDir, 'images');
  await mkdir(images, { recursive: true });
  using _lock = await acquireLock(join(images, lockNameOf(basename(directory))), {});
  if (await openCache(cacheDir).find(name)) return;
  // A copy that is cut off is a build that was, for whoever builds next.
  const copy = join(images, `${buildPrefixOf(basename(directory))}copy`);
  await cp(directory, copy, { recursive: true });
  await rename(copy, join(images, basename(directory)));
}
