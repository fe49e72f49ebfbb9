import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { PORTS } from '@skerry/devnet';
import { skerryPaths } from '@skerry/kit';
import { findProcesses, killAll } from '../../apps/cli/src/testing/processes.ts';
import { ROOT } from '../source.ts';

/** A network of this repository on this machine, at ports that nobody else uses. */
export interface Network extends AsyncDisposable {
  readonly core: string;
  readonly compute: string | undefined;
}

const SKERRY = join(ROOT, 'apps/cli/bin/skerry.js');

type Urls = Pick<Network, 'core' | 'compute'>;

/** What `skerry up --json` says once the network is up: the first JSON document that it prints. */
async function readUrls(stdout: Readable): Promise<Urls> {
  let text = '';
  for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (!/^\}$/m.test(text)) continue;
    const { urls } = JSON.parse(text) as { urls: { core: string; compute?: string } };
    return { core: urls.core, compute: urls.compute };
  }
  throw new Error('skerry up ended before the network was up');
}

/** `skerry up`, until it says that the network is up. */
export async function startNetwork(): Promise<Network> {
  await using stack = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), 'skerry-compat-'));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  // Images that were built before are used again.
  const { cache } = skerryPaths(process.env);
  const ports = Object.values(PORTS).flatMap(({ flag }) => [flag, '0']);
  const child = spawn(process.execPath, [SKERRY, 'up', '--quiet', '--json', ...ports], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, SKERRY_HOME: home, SKERRY_CACHE: cache },
  });
  const exited = once(child, 'exit');
  stack.defer(async () => {
    child.kill('SIGTERM');
    await exited;
    // Machines outlive their node, for the next one; here none comes.
    killAll(findProcesses(new RegExp(`^qemu-system.*${home}`)));
  });
  const urls = await readUrls(child.stdout);
  const started = stack.move();
  return { ...urls, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
