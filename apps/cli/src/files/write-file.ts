import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, realpath, stat, statfs, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isMissing, renameDurably } from '@skerry/kit/files';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { removeWhenEnded } from '../interrupt.ts';
import type { Output } from '../output/output.ts';
import { renderBytes } from '../output/text.ts';

export type Write = (chunk: Uint8Array) => Promise<void>;

/** Of the disk, for everything else on it: whoever sends a file may send it without an end. */
const RESERVE_BYTES = 64 * 1024 ** 2;
/** How much is written between two looks at what is free. */
const LOOK_BYTES = 16 * 1024 ** 2;

const freeBytes = async (directory: string) => {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
};

/** To be told of what was written. Throws STORAGE_FULL where the disk has little left. */
export function keepRoom(directory: string, free = freeBytes): (bytes: number) => Promise<void> {
  let unseen = 0;
  return async (bytes) => {
    unseen += bytes;
    if (unseen < LOOK_BYTES) return;
    unseen = 0;
    if ((await free(directory)) < RESERVE_BYTES)
      throw new AppError(
        'STORAGE_FULL',
        `the disk of ${directory} has less than ${renderBytes(RESERVE_BYTES)} left: what was written of the file is removed`,
      );
  };
}

interface Target {
  readonly path: string;
  /** Whether it is replaced as a whole; what is a device or a pipe is written to. */
  readonly isReplaced: boolean;
}

/** Where a file goes. A link goes on leading to what it leads to. Throws INVALID_PARAMETERS where no file can be. */
async function checkTarget(path: string): Promise<Target> {
  try {
    const found = await stat(path);
    if (found.isDirectory())
      throw new AppError('INVALID_PARAMETERS', `${path} is a directory: name a file in it`);
    return { path: await realpath(path), isReplaced: found.isFile() };
  } catch (error) {
    if (error instanceof AppError) throw error;
    if (isMissing(error)) return { path, isReplaced: true };
    throw cannotWrite(path, error);
  }
}

/** What a person is told of a file that cannot be made. A draft stands beside what it becomes: where it is missing, its directory is. */
export const cannotWrite = (path: string, error: unknown) =>
  new AppError(
    'INVALID_PARAMETERS',
    isMissing(error)
      ? `there is no directory ${dirname(path)}`
      : `cannot write ${path} (${(error as NodeJS.ErrnoException).code})`,
    { cause: error },
  );

const openToWrite = (path: string, flags: string, mode?: number): Promise<FileHandle> =>
  open(path, flags, mode).catch((error: unknown) => {
    throw cannotWrite(path, error);
  });

async function writeThrough(path: string, copy: (write: Write) => Promise<number>): Promise<number> {
  await using file = await openToWrite(path, 'w');
  return await copy(async (chunk) => {
    await file.writeFile(chunk);
  });
}

const draftOf = (path: string) => `${path}.${randomUUID()}.part`;
/** What a draft has behind the name of its file. */
const DRAFT = /^\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.part$/;

/** Tells of drafts of a file: a command that was killed outright could not remove its own. Nothing says whether one is still written. */
export async function tellDrafts(given: string, { note }: Pick<Output, 'note'>): Promise<void> {
  const { path } = await checkTarget(given);
  const [directory, name] = [dirname(path), basename(path)];
  const names = await readdir(directory).catch(() => []);
  for (const one of names.filter((other) => other.startsWith(name) && DRAFT.test(other.slice(name.length)))) {
    const draft = join(directory, one);
    const found = await stat(draft).catch(() => undefined);
    if (found === undefined) continue;
    note(
      `${draft} (${renderBytes(found.size)}) is of an earlier command that was to write ${name}: unless that still runs, remove it: rm ${shellWord(resolve(draft))}`,
    );
  }
}

/**
 * Writes a file that a person named, under its name when all of it is there and right, and nothing otherwise.
 * @param copy passes on what is to be written; rejects where that is not right
 * @param mode of the file, before the umask; by default everybody may read it
 * @throws AppError INVALID_PARAMETERS, STORAGE_FULL, and what `copy` throws
 */
export async function writeWhole(
  given: string,
  copy: (write: Write) => Promise<number>,
  mode?: number,
): Promise<number> {
  const { path, isReplaced } = await checkTarget(given);
  if (!isReplaced) return writeThrough(path, copy);
  const draft = draftOf(path);
  using _ = removeWhenEnded(draft);
  const file = await openToWrite(draft, 'wx', mode);
  const noteWritten = keepRoom(dirname(path));
  try {
    const bytes = await copy(async (chunk) => {
      await file.writeFile(chunk);
      await noteWritten(chunk.length);
    });
    await file.sync();
    await file.close();
    await renameDurably(draft, path);
    return bytes;
  } catch (error) {
    await file.close().catch(() => {});
    await unlink(draft).catch(() => {});
    throw error;
  }
}
