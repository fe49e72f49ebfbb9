import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { acquireLock, type Lock } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

/** Daemons whose devnet was killed notice it and stop within their own deadline, which is shorter. */
export const LEFTOVER_WAIT_MS = 25_000;

/** One that is just stopping (its terminal was closed) gets this long before it counts as running. */
const STOPPING_WAIT_MS = 2_000;

interface Locks extends Disposable {
  /** Held by every daemon too. */
  readonly daemons: Lock;
}

/** Held by the devnet, which writes its number into it. */
export const ownLockFile = (dataDir: string) => join(dataDir, 'devnet.lock');

/** Held by the devnet and by every daemon of it. */
export const daemonsLockFile = (dataDir: string) => join(dataDir, 'daemons.lock');

/** @throws AppError DEVNET_RUNNING */
export async function lockDataDir(dataDir: string, onWait: () => void): Promise<Locks> {
  const file = ownLockFile(dataDir);
  const own = await acquireLock(file, { waitMs: STOPPING_WAIT_MS });
  if (own === undefined) {
    throw new AppError(
      'DEVNET_RUNNING',
      `another devnet (process ${readFileSync(file, 'utf8').trim()}) uses ${dataDir}; stop it, or choose another directory`,
    );
  }
  own.write(`${process.pid}\n`);
  const shared = daemonsLockFile(dataDir);
  let daemons = await acquireLock(shared, { waitMs: 0 });
  if (daemons === undefined) {
    onWait();
    daemons = await acquireLock(shared, { waitMs: LEFTOVER_WAIT_MS });
  }
  if (daemons === undefined) {
    own[Symbol.dispose]();
    throw new AppError('DEVNET_RUNNING', `a daemon of a previous devnet still uses ${dataDir}`);
  }
  const held = daemons;
  return {
    daemons,
    [Symbol.dispose]() {
      held[Symbol.dispose]();
      own[Symbol.dispose]();
    },
  };
}
