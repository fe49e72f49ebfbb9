import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createLogger, readConfig } from '@skerry/kit';
import { computeConfig } from '../config.ts';
import { ImageStore } from '../images/store.ts';

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
 * them when the scenario ends.
 */
export async function playScenario(file: string, image = 'debian:12', ...args: string[]): Promise<void> {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const config = readConfig(computeConfig, {
    SKERRY_HOME: process.env.SKERRY_HOME,
    SKERRY_CACHE: process.env.SKERRY_CACHE,
  });
  const images = openCache(config.cacheDir);
  const startedMs = Date.now();
  await images.ensure(image, () => {});
  console.log(`the image was at hand after ${Date.now() - startedMs} ms`);
  const child = spawn(
    'unshare',
    [
      '--net',
      '--mount',
      '--',
      process.execPath,
      resolve(import.meta.dirname, file),
      config.cacheDir,
      image,
      ...args,
    ],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, 'the scenario failed; its last words are above');
}
