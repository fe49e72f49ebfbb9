import { spawn } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { AppError } from '@skerry/protocol/forms';

const CONFLICT_EXIT_CODE = 75;
/** Beyond what flock was told to wait. */
const FLOCK_GRACE_MS = 10_000;

/**
 * A kernel lock (flock(2)) on a file. It belongs to the open file: every process that inherits `fd` holds it too, and it is
 * free when, and only when, the last of them is gone, also after a kill -9.
 */
export interface Lock extends Disposable {
  readonly fd: number;
  /** Replaces what the file says, such as who holds the lock. */
  write(text: string): void;
}

export interface LockOptions {
  /** As long as it takes without it. */
  readonly waitMs?: number | undefined;
  /** Others may hold it too, if they share it. */
  readonly shared?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Ends with flock's exit code, and what it said. Killed with the signal. */
async function runFlock(args: readonly string[], fd: number, signal: AbortSignal | undefined) {
  // A group of its own: Ctrl-C at a terminal is for us, and the signal tells.
  const child = spawn('flock', [...args, '3'], {
    stdio: ['ignore', 'ignore', 'pipe', fd],
    detached: true,
    ...(signal ? { signal, killSignal: 'SIGKILL' } : {}),
  });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once('error', reject);
  child.once('close', resolve);
  return { code: await promise, said: said.trim() };
}

/**
 * Takes the lock of a file, which is made where there is none; undefined where somebody else still holds it when `waitMs` is
 * over. Throws PROGRAM_MISSING, and the signal's reason.
 */
export async function acquireLock(path: string, options: LockOptions): Promise<Lock | undefined> {
  const { waitMs, shared, signal } = options;
  signal?.throwIfAborted();
  const wait = waitMs === undefined ? [] : waitMs === 0 ? ['--nonblock'] : ['--wait', String(waitMs / 1000)];
  const kind = shared ? '--shared' : '--exclusive';
  const args = [kind, '--conflict-exit-code', String(CONFLICT_EXIT_CODE), ...wait];
  const limits = [
    ...(signal ? [signal] : []),
    ...(waitMs === undefined ? [] : [AbortSignal.timeout(waitMs + FLOCK_GRACE_MS)]),
  ];
  const fd = openSync(path, 'a+', 0o600);
  let isHeld = false;
  try {
    const { code, said } = await runFlock(args, fd, AbortSignal.any(limits));
    if (code === CONFLICT_EXIT_CODE) return undefined;
    if (code !== 0) throw new AppError('INTERNAL', `cannot take the lock ${path}: ${said || code}`);
    isHeld = true;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof AppError) throw error;
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new AppError('INTERNAL', `cannot take the lock ${path}: ${(error as Error).message}`, {
        cause: error,
      });
    throw new AppError('PROGRAM_MISSING', `the lock ${path} needs the program flock (package util-linux)`, {
      cause: error,
    });
  } finally {
    if (!isHeld) closeSync(fd);
  }
  return {
    fd,
    write(text) {
      ftruncateSync(fd);
      writeSync(fd, text);
    },
    [Symbol.dispose]() {
      if (isHeld) closeSync(fd);
      isHeld = false;
    },
  };
}
