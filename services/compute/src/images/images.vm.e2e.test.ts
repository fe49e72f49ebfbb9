import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, readlink, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { acquireLock, createLogger, readConfig } from '@skerry/kit';
import { computeConfig } from '../config.ts';
import { findCacheDir, openCache } from '../testing/play.ts';
import { until } from '../testing/wait.ts';
import { IMAGE_FILES, type Image } from './image.ts';
import { ImageStore } from './store.ts';

/** Only what hangs takes as long. */
const SOON_MS = 600_000;

test('a build that is killed leaves nothing behind that matters, and the next one succeeds', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const cacheDir = await mkdtemp(join(tmpdir(), 'skerry-images-'));
  const config = readConfig(computeConfig, { SKERRY_HOME: cacheDir });
  try {
    await startAndKill(cacheDir);
    await until(
      'everything of the build is dead',
      SOON_MS,
      async () => (await listProcessesBelow(cacheDir)).length === 0,
    );
    assert.doesNotMatch(await readFile('/proc/mounts', 'utf8'), new RegExp(cacheDir), 'nothing is mounted');

    const percents: number[] = [];
    const images = new ImageStore({
      cacheDir,
      mirrors: config,
      log: createLogger('test', 'silent'),
      signal: new AbortController().signal,
    });
    assert.equal(await images.find('debian:12'), undefined);
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
  using _lock = await acquireLock(join(images, '.lock'), {});
  if (await openCache(cacheDir).find(name)) return;
  // A copy that is cut off is a build that was, for whoever builds next.
  const copy = join(images, `.build-${basename(directory)}`);
  await cp(directory, copy, { recursive: true });
  await rename(copy, join(images, basename(directory)));
}

/** Kills a building process in the middle of unpacking, when file systems are mounted inside the new root. */
async function startAndKill(cacheDir: string): Promise<void> {
  const code = `
    const { ImageStore } = await import(${JSON.stringify(join(import.meta.dirname, 'store.ts'))});
    const { createLogger } = await import('@skerry/kit');
    const mirrors = ${JSON.stringify(readConfig(computeConfig, { SKERRY_HOME: cacheDir }))};
    const store = new ImageStore({ cacheDir: ${JSON.stringify(cacheDir)}, mirrors, log: createLogger('test', 'silent'), signal: new AbortController().signal });
    await store.ensure('debian:12', ({ message }) => console.log(message));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (text.includes('installing')) child.kill('SIGKILL');
  });
  child.once('exit', () => resolve());
  await promise;
  assert.equal(child.signalCode, 'SIGKILL', 'the build got as far as installing packages');
}

/** Processes whose root or working directory is below a directory. */
async function listProcessesBelow(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(pid)) continue;
    for (const link of ['root', 'cwd']) {
      const target = await readlink(`/proc/${pid}/${link}`).catch(() => '');
      if (target.startsWith(directory)) found.push(pid);
    }
  }
  return found;
}
