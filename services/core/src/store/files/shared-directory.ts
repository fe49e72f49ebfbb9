import { acquireLock, type Lock, type LockOptions } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

/** Another process that starts at the same moment has it for as long as it takes to empty a directory. */
const WAIT_MS = 10_000;

/** Undefined where others have it, or where the file system knows no such locks. */
async function tryLock(path: string, options: LockOptions): Promise<Lock | 'unknown' | undefined> {
  try {
    return await acquireLock(path, options);
  } catch (error) {
    if (error instanceof AppError) return 'unknown';
    throw error;
  }
}

/**
 * Enters a directory that other processes on this machine may work in, for as long as this one lives.
 * @param prepare told whether nobody else is there: then what an earlier process left half done may be removed
 */
export async function enterDirectory<T>(
  lockPath: string,
  prepare: (isAlone: boolean) => Promise<T>,
): Promise<T> {
  const alone = await tryLock(lockPath, { waitMs: 0 });
  if (alone === 'unknown') return prepare(true);
  try {
    return await prepare(alone !== undefined);
  } finally {
    alone?.[Symbol.dispose]();
    // Not given back: it ends with the process.
    await tryLock(lockPath, { waitMs: WAIT_MS, shared: true });
  }
}
