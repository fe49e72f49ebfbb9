import { readFile } from 'node:fs/promises';
import { acquireLock, type Lock, type LockOptions } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { readProcess } from './process.ts';

/**
 * Takes the lock of a data directory and notes who holds it. Every PostgreSQL process that we start inherits it: so it is free
 * when, and only when, neither the supervisor nor any process of its server is left.
 *
 * @returns undefined where somebody else still holds it when `waitMs` is over
 */
export async function lockDataDir(file: string, options: LockOptions): Promise<Lock | undefined> {
  try {
    const lock = await acquireLock(file, options);
    lock?.write(describeHolder(process.pid));
    return lock;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(
      'DATABASE_NOT_RUNNABLE',
      `${error.message}. The embedded database needs flock and setpriv of util-linux; or set DATABASE_URL to a PostgreSQL server.`,
      { cause: error },
    );
  }
}

/** Whether the supervisor that took the lock last is still there; the lock may outlive it in the hands of its server. */
export async function isHolderAlive(file: string): Promise<boolean> {
  const [pid, startTicks] = (await readFile(file, 'utf8')).trim().split(' ');
  // It has the lock and is about to write who it is.
  if (startTicks === undefined) return true;
  const holder = readProcess(Number(pid));
  return holder !== undefined && !holder.zombie && holder.startTicks === startTicks;
}

/** A pid alone can be given to another process later; pid and start time together cannot. */
function describeHolder(pid: number): string {
  return `${pid} ${readProcess(pid)?.startTicks ?? 0}\n`;
}
