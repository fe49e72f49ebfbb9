import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import { RESTORING, RUNNING } from '../backup/keeping.ts';
import { makeDirectory } from '../files/atomic-file.ts';
import { acquireLock, type Lock } from '../files/file-lock.ts';

/** A service that is just stopping, or a restore that has just ended. */
const WAIT_MS = 2_000;

/**
 * Says that this process works in a data directory, for as long as it lives. Several may: two gateways while one takes
 * over from the other. Throws NODE_RUNNING while a backup is restored there, INVALID_CONFIG where one was not to its end.
 */
export async function enterDataDir(directory: string): Promise<void> {
  await makeDirectory(directory);
  const lock = await tryLock(directory, true);
  if (lock === 'taken') throw new AppError('NODE_RUNNING', `a backup is being restored to ${directory}`);
  if (!existsSync(join(directory, RESTORING))) return;
  lock?.[Symbol.dispose]();
  throw new AppError(
    'INVALID_CONFIG',
    `a restore to ${directory} did not come to its end: repeat it with "skerry restore --force"`,
  );
}

/** Takes a data directory for oneself alone. Throws NODE_RUNNING while a service works in it. */
export async function takeDataDir(directory: string): Promise<Disposable | undefined> {
  const lock = await tryLock(directory, false);
  if (lock === 'taken')
    throw new AppError(
      'NODE_RUNNING',
      `a service works in ${directory}: stop it first, or restore to another directory`,
    );
  return lock;
}

/** Undefined on file systems and machines that have no such locks: services run there all the same. */
async function tryLock(directory: string, shared: boolean): Promise<Lock | 'taken' | undefined> {
  try {
    return (await acquireLock(join(directory, RUNNING), { waitMs: WAIT_MS, shared })) ?? 'taken';
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
