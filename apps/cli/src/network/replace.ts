import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { LET_GO } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import type { DaemonOptions } from './daemon.ts';

/** A start takes seconds, and minutes on a machine that is emulated. Less than a unit's TimeoutStartSec, which would say less. */
const SUCCESSOR_MS = 240_000;

const isReady = (word: unknown) => (word as { readonly ready?: unknown } | null)?.ready === true;

/** Resolves with undefined when it serves, else with what became of it. */
async function watch(child: ChildProcess): Promise<string | undefined> {
  const over = new AbortController();
  const { signal } = over;
  const served = (async () => {
    for (;;) {
      const [word] = (await once(child, 'message', { signal })) as [unknown];
      if (isReady(word)) return undefined;
    }
  })();
  const ended = once(child, 'exit', { signal }).then(
    ([code, by]) => `ended with ${code === null ? by : `code ${code}`} before it served: see its log`,
  );
  const late = new Promise<string>((resolve) => {
    const timer = setTimeout(() => resolve(`did not serve within ${SUCCESSOR_MS} ms`), SUCCESSOR_MS);
    signal.addEventListener('abort', () => clearTimeout(timer));
  });
  try {
    return await Promise.race([served, ended, late]);
  } finally {
    over.abort();
    for (const loser of [served, ended]) loser.catch(() => {});
  }
}

/**
 * Starts a gateway that takes the place of the one on the same data directory, and resolves when it serves; it serves on by itself. If
 * this process ends before, so does the successor. Throws DAEMON_FAILED where it does not come to serve: the other goes on.
 */
export async function replaceGateway(
  { environment, output }: Context,
  { settings }: DaemonOptions,
): Promise<void> {
  const args = [...process.execArgv, process.argv[1]!, 'gateway'];
  const child = spawn(process.execPath, [...args, ...(settings ? ['--settings', settings] : [])], {
    env: { ...environment, SKERRY_GATEWAY_REPLACE: 'yes' } as NodeJS.ProcessEnv,
    // Of a session of its own: Ctrl-C means this process, whose end the successor notices while it needs it.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const trouble = await watch(child);
  if (trouble !== undefined) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    throw new AppError('DAEMON_FAILED', `the new gateway ${trouble}. The one that serves goes on`);
  }
  await new Promise((resolve) => child.send(LET_GO, resolve));
  child.disconnect();
  child.unref();
  output.result({ pid: child.pid }, `The new gateway serves (process ${child.pid}).`);
}
