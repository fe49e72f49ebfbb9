import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { LET_GO, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import type { DaemonOptions } from './daemon.ts';

/** A start takes seconds, and minutes on a machine that is emulated. Less than a unit's TimeoutStartSec, which would say less. */
const SUCCESSOR_MS = 240_000;

interface Ready {
  readonly ready: true;
  readonly pid: number;
}

const isReady = (word: unknown): word is Ready =>
  (word as { readonly ready?: unknown } | null)?.ready === true;

/** What the successor says when it serves. Throws DAEMON_FAILED where it does not come to that. */
async function untilReady(child: ChildProcess): Promise<Ready> {
  const over = new AbortController();
  const { signal } = over;
  const fail = (what: string) => {
    throw new AppError('DAEMON_FAILED', `the new gateway ${what}. The one that serves goes on`);
  };
  const served = (async () => {
    for (;;) {
      const [word] = (await once(child, 'message', { signal })) as [unknown];
      if (isReady(word)) return word;
    }
  })();
  const ended = once(child, 'disconnect', { signal }).then(() => fail('ended before it served: see its log'));
  const late = pause(SUCCESSOR_MS, signal).then(() => fail(`did not serve within ${SUCCESSOR_MS} ms`));
  for (const loser of [served, ended, late]) loser.catch(() => {});
  try {
    return await Promise.race([served, ended, late]);
  } finally {
    over.abort();
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
  const command = [process.execPath, ...process.execArgv, process.argv[1]!, 'gateway'];
  // Not a child of this process: a service manager supervises what is its own. And of a session of its own: Ctrl-C means this process,
  // whose end the successor notices while it needs it.
  const child = spawn('setsid', ['--fork', ...command, ...(settings ? ['--settings', settings] : [])], {
    env: { ...environment, SKERRY_GATEWAY_REPLACE: 'yes' } as NodeJS.ProcessEnv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  try {
    const { pid } = await untilReady(child);
    await new Promise((resolve) => child.send(LET_GO, resolve));
    output.result({ pid }, `The new gateway serves (process ${pid}).`);
  } finally {
    if (child.connected) child.disconnect();
  }
}
