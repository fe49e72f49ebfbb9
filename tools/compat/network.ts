import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PORTS } from '@skerry/devnet';
import { skerryPaths } from '@skerry/kit';
import { ROOT } from '../source.ts';

/** A network of this repository on this machine, at ports that nobody else uses. */
export interface Network extends AsyncDisposable {
  readonly core: string;
  readonly compute: string | undefined;
}

const SKERRY = join(ROOT, 'apps/cli/bin/skerry.js');

/** `skerry up`, until it says that the network is up. */
export async function startNetwork(): Promise<Network> {
  const home = await mkdtemp(join(tmpdir(), 'skerry-compat-'));
  // Images that were built before are used again.
  const { cache } = skerryPaths(process.env);
  const ports = Object.values(PORTS).flatMap(({ flag }) => [flag, '0']);
  const child = spawn(process.execPath, [SKERRY, 'up', '--quiet', '--json', ...ports], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, SKERRY_HOME: home, SKERRY_CACHE: cache },
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    exited.then(([code]) => Promise.reject(new Error(`skerry up ended with ${code}`))),
  ])) as [string];
  const { urls } = JSON.parse(line) as { urls: { core: string; compute?: string } };
  return {
    core: urls.core,
    compute: urls.compute,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
      await rm(home, { recursive: true, force: true });
    },
  };
}
