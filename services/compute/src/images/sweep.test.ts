import assert from 'node:assert/strict';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { acquireLock, createLogger, readConfig } from '@skerry/kit';
import { computeConfig } from '../config.ts';
import { inDirectory, onDiskOf } from '../testing/directory.ts';
import { MANIFEST } from './image.ts';
import { ImageStore } from './store.ts';
import { noteUse, sweepFileImages } from './sweep.ts';

const MIB = 1024 ** 2;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const nowMs = Date.now();
const nameOf = (digit: string) => `file-${digit.repeat(64)}`;

/** Images that were asked for so long ago, each of as many bytes. */
async function makeImages(directory: string, ages: Readonly<Record<string, number>>, bytes = 1) {
  for (const [name, ageMs] of Object.entries(ages)) {
    const image = join(directory, name);
    await mkdir(image);
    await writeFile(join(image, 'disk.qcow2'), new Uint8Array(bytes));
    await writeFile(join(image, MANIFEST), '{}');
    const usedAt = new Date(nowMs - ageMs);
    await utimes(join(image, MANIFEST), usedAt, usedAt);
  }
}

test('an image of a file goes after a day in which nobody asked for it; named ones and builds stay', () =>
  inDirectory(async (directory) => {
    const [old, used, young] = ['a', 'b', 'c'].map(nameOf) as [string, string, string];
    const ages = { [old]: DAY_MS + 1_000, [used]: 2 * DAY_MS, [young]: DAY_MS - MINUTE_MS };
    await makeImages(directory, { ...ages, 'debian-12-0123456789ab': 9 * DAY_MS });
    await mkdir(join(directory, '.build-0123456789ab'));
    await noteUse({ directory: join(directory, used) });
    assert.deepEqual(await sweepFileImages(directory, nowMs), [old]);
    const left = ['.build-0123456789ab', 'debian-12-0123456789ab', used, young];
    assert.deepEqual((await readdir(directory)).sort(), left.sort());
    assert.deepEqual(await sweepFileImages(join(directory, 'none'), nowMs), []);
  }));

test('where the disk is full, images of files go that were not asked for lately', () =>
  onDiskOf(1_024 + 16, async (directory) => {
    const [older, old, young] = ['a', 'b', 'c'].map(nameOf) as [string, string, string];
    const ages = { [old]: 20 * MINUTE_MS, [young]: MINUTE_MS, [older]: 30 * MINUTE_MS };
    await makeImages(directory, ages, 4 * MIB);
    assert.deepEqual(await sweepFileImages(directory, nowMs), []);
    await writeFile(join(directory, 'another'), new Uint8Array(8 * MIB));
    assert.deepEqual(await sweepFileImages(directory, nowMs), [older, old]);
  }));

test('what a build left that was killed goes when the node starts, whoever may ask for its image again; one that goes on stays', () =>
  inDirectory(async (cacheDir) => {
    const directory = join(cacheDir, 'images');
    const [left, other, going] = ['.build-3-0a', '.build-3-0b', '.build-5-0a'] as const;
    for (const name of [left, other, going]) {
      await mkdir(join(directory, name), { recursive: true });
      await writeFile(join(directory, name, 'download'), 'x');
    }
    using _held = await acquireLock(join(directory, '.lock-5'), { waitMs: 0 });
    const store = new ImageStore({
      ...{ cacheDir, mirrors: readConfig(computeConfig, { SKERRY_HOME: cacheDir }) },
      ...{ log: createLogger('test', 'silent'), signal: new AbortController().signal },
    });
    await store.sweep(nowMs);
    const builds = (await readdir(directory)).filter((name) => name.startsWith('.build'));
    assert.deepEqual(builds, [going]);
    // One that begins later is looked after by whoever builds.
    await mkdir(join(directory, left));
    await store.sweep(nowMs);
    assert.ok((await readdir(directory)).includes(left));
  }));
