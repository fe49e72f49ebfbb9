import { fstatSync, writeFile } from 'node:fs';
import { lstat, open, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { acquireLock, isMissing, type Lock } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';

/** A file that a backup is written to until it is whole. Nobody else takes it for abandoned until it is disposed of. */
export interface Draft extends Disposable {
  write(bytes: AsyncIterable<Uint8Array>): Promise<void>;
}

/** Somebody else may make or remove a draft between two looks at it. */
const TRIES_MAX = 3;

const beingMade = (path: string) =>
  new AppError(
    'FILE_EXISTS',
    `another backup is being written to ${path}: wait for it, or name another file`,
  );

/** Makes the file for its owner's eyes; false where one is there. */
async function create(path: string): Promise<boolean> {
  try {
    await (await open(path, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

interface Found {
  /** Whether an earlier backup may have left it, for us to remove. */
  readonly isOurs: boolean;
  /** Whether the lock is that of the file which has the name now. */
  isLockedBy(lock: Lock): boolean;
}

async function look(path: string): Promise<Found | undefined> {
  try {
    const found = await lstat(path);
    const user = process.geteuid?.();
    return {
      isOurs: found.isFile() && (user === 0 || found.uid === user),
      isLockedBy({ fd }) {
        const { dev, ino } = fstatSync(fd);
        return dev === found.dev && ino === found.ino;
      },
    };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Throws FILE_EXISTS where somebody else holds it. */
async function lockOf(path: string, isNew: boolean): Promise<Lock> {
  try {
    const lock = await acquireLock(path, { waitMs: 0 });
    if (lock) return lock;
  } catch (error) {
    if (isNew) await rm(path, { force: true });
    throw error;
  }
  throw beingMade(path);
}

/** Written by what holds the lock: some file systems let nobody else write then. */
const draftOf = (lock: Lock): Draft => ({
  async write(bytes) {
    for await (const part of bytes) await promisify(writeFile)(lock.fd, part);
  },
  [Symbol.dispose]: () => lock[Symbol.dispose](),
});

/**
 * Makes a draft. What an earlier backup left there, which was killed, is removed: its lock is free.
 * @throws AppError FILE_EXISTS where another backup writes it; what the system says of a file that cannot be made
 */
export async function openDraft(path: string): Promise<Draft> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const isNew = await create(path);
    const found = await look(path);
    if (!found) continue;
    if (!isNew && !found.isOurs)
      throw new AppError('FILE_EXISTS', `${path} is there, and is not a file of yours: remove it`);
    const lock = await lockOf(path, isNew);
    const isIt = (await look(path))?.isLockedBy(lock) === true;
    if (isIt && isNew) return draftOf(lock);
    if (isIt) await rm(path);
    lock[Symbol.dispose]();
  }
  throw beingMade(path);
}
