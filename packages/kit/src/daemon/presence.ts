import { existsSync } from 'node:fs';
import { chown, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import { RESTORING, RUNNING } from '../backup/keeping.ts';
import { isMissing, makeDirectory, readTextIfAny } from '../files/atomic-file.ts';
import { acquireLock, type Lock } from '../files/file-lock.ts';

/** A service that is just stopping, or a restore that has just ended. */
const WAIT_MS = 2_000;

export interface EnterOptions {
  /** Whether other processes that share it may work there, too. */
  readonly isShared: boolean;
  /** How long others are waited for; WAIT_MS by default. */
  readonly waitMs?: number;
}

/**
 * Says that this process works in a data directory, for as long as it lives. Throws NODE_RUNNING while another one does, unless both
 * share it, and while a backup is restored there; INVALID_CONFIG where one was not to its end.
 */
export async function enterDataDir(
  directory: string,
  { isShared, waitMs = WAIT_MS }: EnterOptions,
): Promise<void> {
  await makeDirectory(directory);
  const lock = await tryLock(directory, isShared, waitMs);
  if (lock === 'taken')
    throw new AppError(
      'NODE_RUNNING',
      isShared
        ? `a backup is being restored to ${directory}`
        : `process ${await readHolder(directory)} works in ${directory}: stop it first, or give this one a directory of its own`,
    );
  if (!isShared) tellHolder(lock);
  try {
    refuseHalfRestored(directory);
  } catch (error) {
    lock?.[Symbol.dispose]();
    throw error;
  }
}

/** Throws INVALID_CONFIG where a restore was interrupted: what is there is neither the old node nor the new one. */
export function refuseHalfRestored(directory: string): void {
  if (!existsSync(join(directory, RESTORING))) return;
  throw new AppError(
    'INVALID_CONFIG',
    `a restore to ${directory} did not come to its end: repeat it with "skerry restore --force"; what was there before is there still, or in replaced-TIME inside it`,
  );
}

/** Takes a data directory for oneself alone. Throws NODE_RUNNING while a service works in it. */
export async function takeDataDir(directory: string): Promise<Disposable | undefined> {
  const lock = await tryLock(directory, false, WAIT_MS);
  if (lock === 'taken')
    throw new AppError(
      'NODE_RUNNING',
      `a service works in ${directory}: stop it first, or restore to another directory`,
    );
  tellHolder(lock);
  if (lock !== undefined && process.geteuid?.() === 0) {
    // Root may be here for the user of a service, who has to open it, too.
    const { uid, gid } = await stat(directory);
    await chown(join(directory, RUNNING), uid, gid);
  }
  return lock;
}

/** Whether a service works in a data directory now; undefined where nobody can tell: it is another user's, or there are no such locks. */
export async function isDataDirTaken(directory: string): Promise<boolean | undefined> {
  try {
    // Whoever only looks leaves no lock behind.
    await stat(join(directory, RUNNING));
    const lock = await tryLock(directory, false, 0);
    if (lock === 'taken') return true;
    lock?.[Symbol.dispose]();
    return lock && false;
  } catch (error) {
    return isMissing(error) ? false : undefined;
  }
}

/** Says who has the directory for itself, to those who want it. On a full disk they are told less. */
function tellHolder(lock: Lock | undefined): void {
  try {
    lock?.write(`${process.pid}\n`);
  } catch {
    // The lock counts, not what it says.
  }
}

/** Whoever has the directory for itself. */
const readHolder = async (directory: string) =>
  (await readTextIfAny(join(directory, RUNNING)))?.trim() || 'of somebody else';

/** Undefined on file systems and machines that have no such locks: services run there all the same. */
async function tryLock(
  directory: string,
  shared: boolean,
  waitMs: number,
): Promise<Lock | 'taken' | undefined> {
  try {
    return (await acquireLock(join(directory, RUNNING), { waitMs, shared })) ?? 'taken';
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
