import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { AppError } from '@skerry/protocol';

const CONFLICT_EXIT_CODE = 75;

/**
 * A kernel lock (flock(2)) on a file. It belongs to the open file: every process that inherits `fd` holds it too, and it
 * is free when, and only when, the last of them is gone, also after a kill -9.
 */
export interface Lock extends Disposable {
  readonly fd: number;
}

/** Waits up to `waitMs`; undefined if somebody else still holds the lock then. Throws PROGRAM_MISSING. */
export async function acquireLock(file: string, waitMs: number): Promise<Lock | undefined> {
  const fd = openSync(file, 'a+', 0o600);
  const wait = waitMs === 0 ? ['--nonblock'] : ['--wait', String(waitMs / 1000)];
  const args = ['--exclusive', '--conflict-exit-code', String(CONFLICT_EXIT_CODE), ...wait, '3'];
  try {
    const child = spawn('flock', args, { stdio: ['ignore', 'ignore', 'inherit', fd] });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code === 0) {
      ftruncateSync(fd);
      writeSync(fd, `${process.pid}\n`);
      return { fd, [Symbol.dispose]: () => closeSync(fd) };
    }
    if (code !== CONFLICT_EXIT_CODE) throw new AppError('INTERNAL', `flock failed on ${file} (${code})`);
  } catch (error) {
    closeSync(fd);
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new AppError('PROGRAM_MISSING', 'the program flock is needed (package util-linux)', {
        cause: error,
      });
    throw error;
  }
  closeSync(fd);
  return undefined;
}

/** Which process wrote its id into the lock's file last. */
export function readLockHolder(file: string): string {
  return readFileSync(file, 'utf8').trim();
}
