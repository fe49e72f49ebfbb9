import type { Lock, Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Layout } from './layout.ts';
import { signalLeftover } from './leftover.ts';
import { isHolderAlive, lockDataDir } from './lock.ts';

const ROUND_MS = 1_000;

/** For a supervisor that is alive: it may be about to end, as in a quick restart of the node. */
const PATIENCE_MS = 3_000;

/** For the server of a supervisor that was killed: it was told to end by the kernel and may have much to write. */
const ORPHAN_FAST_ROUND = 1;
const ORPHAN_IMMEDIATE_ROUND = 30;
const ORPHAN_ROUNDS_MAX = 40;

export interface TakeOverOptions {
  readonly log: Logger;
  readonly signal?: AbortSignal | undefined;
  /** How long a supervisor that lives is waited for. */
  readonly patienceMs?: number | undefined;
}

/**
 * Takes the lock of a data directory. Where its supervisor is dead and only the server is left, sees that the server
 * ends (a fast shutdown, then an immediate one, both safe for the data) and takes over. Throws DATABASE_IN_USE.
 */
export async function takeOver(
  file: string,
  layouts: readonly Layout[],
  { log, signal, patienceMs = PATIENCE_MS }: TakeOverOptions,
): Promise<Lock> {
  const rounds = { living: 0, orphan: 0 };
  let lock = await lockDataDir(file, { waitMs: 0, signal });
  while (lock === undefined) {
    lock = await lockDataDir(file, { waitMs: ROUND_MS, signal });
    if (lock !== undefined) break;
    // Asked in every round: whoever else waits may have taken the lock over in the meantime.
    rounds[(await isHolderAlive(file)) ? 'living' : 'orphan'] += 1;
    const isOver = rounds.living > 0 && rounds.living * ROUND_MS >= patienceMs;
    if (isOver || rounds.orphan >= ORPHAN_ROUNDS_MAX) throw inUse(file);
    if (rounds.living === 0) await endOrphan(layouts, rounds.orphan, log);
  }
  return lock;
}

async function endOrphan(layouts: readonly Layout[], round: number, log: Logger): Promise<void> {
  const signal = { [ORPHAN_FAST_ROUND]: 'SIGINT', [ORPHAN_IMMEDIATE_ROUND]: 'SIGQUIT' } as const;
  const chosen = signal[round as keyof typeof signal];
  if (chosen === undefined) return;
  log.warn({ signal: chosen }, 'the database of a previous process is still running; waiting for it to stop');
  for (const { cluster } of layouts) await signalLeftover(cluster, chosen);
}

function inUse(file: string): AppError {
  const message = `Another process is using the database (its lock is ${file}). Stop it, or give this node a data directory of its own.`;
  return new AppError('DATABASE_IN_USE', message, { details: { lock: file } });
}
