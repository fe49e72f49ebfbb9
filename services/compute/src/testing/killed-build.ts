import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { resolve } from 'node:path';
import { hear } from '@skerry/kit/testing/heard';
import { openCache } from './play.ts';
import { until } from './wait.ts';

/** Only what hangs takes as long. */
const SOON_MS = 600_000;
const BUILD = `
  const { openCache } = await import(${JSON.stringify(resolve(import.meta.dirname, 'play.ts'))});
  await openCache(process.argv[1]).ensure('debian:12', ({ message }) => console.log(message));`;

/** Builds Debian's image in a process of its own, which is killed as soon as it tells of a step, and looks at what it leaves. */
export async function killBuild(cacheDir: string, step: string): Promise<void> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', BUILD, cacheDir], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const heard = hear(child);
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (text.includes(step)) child.kill('SIGKILL');
  });
  await once(child, 'exit');
  const why = `the build did not get as far as ${step}; its last words:\n${await heard.lastWords()}`;
  assert.equal(child.signalCode, 'SIGKILL', why);
  await until(
    'everything of the build is dead',
    SOON_MS,
    async () => (await listProcessesBelow(cacheDir)).length === 0,
  );
  assert.doesNotMatch(await readFile('/proc/mounts', 'utf8'), new RegExp(cacheDir), 'nothing is mounted');
  assert.equal(await openCache(cacheDir).find('debian:12'), undefined);
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
