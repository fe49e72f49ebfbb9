import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { unreadable } from '../files/read-text.ts';

const STDIN = '-';

/** A backup that can be read from its beginning as often as needed. */
export interface Input extends AsyncDisposable {
  readonly path: string;
}

/**
 * The file that is named, or what standard input brings: that is kept meanwhile in a file without a name, which ends with
 * this process however it ends, because it may hold secrets. Throws INVALID_PARAMETERS, STORAGE_FULL.
 */
export async function openInput({ stdin }: Pick<Context, 'stdin'>, file: string): Promise<Input> {
  if (file !== STDIN) {
    const found = await stat(file).catch((error: unknown) => {
      throw unreadable(file, error);
    });
    if (found.isDirectory()) throw new AppError('INVALID_PARAMETERS', `${file} is a directory`);
    return { path: file, [Symbol.asyncDispose]: async () => {} };
  }
  if (stdin.isTTY)
    throw new AppError('INVALID_PARAMETERS', 'standard input is a terminal: give it the backup with < or |');
  const directory = await mkdtemp(join(tmpdir(), 'skerry-backup-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const kept = await open(join(directory, 'backup'), 'wx', 0o600);
  stack.defer(() => kept.close());
  await rm(directory, { recursive: true });
  try {
    for await (const part of stdin) await kept.writeFile(part as Buffer | string);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    throw new AppError(
      'STORAGE_FULL',
      `${tmpdir()} has no room for the backup: set TMPDIR to a directory that has, or name a file`,
      { cause: error },
    );
  }
  const owned = stack.move();
  return { path: `/proc/self/fd/${kept.fd}`, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
