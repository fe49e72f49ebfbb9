import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createLogger, readConfig } from '@skerry/kit';
import { computeConfig } from '../config.ts';
import { ImageStore } from '../images/store.ts';

/**
 * Plays a scenario with real virtual machines. The image is built here, where the network is; the rest runs in a network
 * namespace of its own, which the kernel takes away with everything in it when the scenario ends.
 */
export async function playScenario(file: string): Promise<void> {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const config = readConfig(computeConfig, {
    SKERRY_HOME: process.env.SKERRY_HOME,
    SKERRY_CACHE: process.env.SKERRY_CACHE,
  });
  const images = new ImageStore({
    cacheDir: config.cacheDir,
    mirrors: config,
    log: createLogger('e2e'),
    signal: new AbortController().signal,
  });
  const startedMs = Date.now();
  await images.ensure('debian:12', () => {});
  console.log(`the image was at hand after ${Date.now() - startedMs} ms`);
  const child = spawn(
    'unshare',
    ['--net', '--', process.execPath, join(import.meta.dirname, file), config.cacheDir],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, 'the scenario failed; its last words are above');
}
