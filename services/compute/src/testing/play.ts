import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { createLogger, readConfig } from '@skerry/kit';
import { playProgram } from '@skerry/kit/testing/play';
import { computeConfig } from '../config.ts';
import { ImageStore } from '../images/store.ts';

/** Where images of this user are kept from one run to the next. */
export function findCacheDir(): string {
  const { SKERRY_HOME, SKERRY_CACHE } = process.env;
  return readConfig(computeConfig, { SKERRY_HOME, SKERRY_CACHE }).cacheDir;
}

/** The images of a cache that compute nodes use. */
export function openCache(cacheDir: string): ImageStore {
  const config = readConfig(computeConfig, { SKERRY_CACHE: cacheDir });
  return new ImageStore({
    cacheDir,
    mirrors: config,
    log: createLogger('e2e'),
    signal: new AbortController().signal,
  });
}

/**
 * Plays a scenario, a file of this directory or an absolute path, with real virtual machines. The image is built here, where
 * the network is; the rest runs in network and mount namespaces of its own, which the kernel takes away with everything in
 * them when the scenario ends. Rejects where it fails, with its last words.
 */
export async function playScenario(file: string, image = 'debian:12', ...args: string[]): Promise<void> {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const cacheDir = findCacheDir();
  const images = openCache(cacheDir);
  const startedMs = Date.now();
  await images.ensure(image, () => {});
  console.log(`the image was at hand after ${Date.now() - startedMs} ms`);
  const scenario = resolve(import.meta.dirname, file);
  const inside = ['--net', '--mount', '--', process.execPath, scenario, cacheDir, image, ...args];
  await playProgram(file, 'unshare', inside);
}
