import { closeSync, openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { AppError } from '@skerry/protocol';
import { readProcess } from './process.ts';
import { runProgram } from './program.ts';

const LOCK_FD = '3';
const CONFLICT_EXIT_CODE = 75;
/** Beyond what flock itself was told to wait. */
const FLOCK_GRACE_MS = 10_000;

/**
 * A kernel lock (flock(2)) on a file. It belongs to the open file, not to a process: we hold it through `fd`, and
 * every PostgreSQL process that we start inherits `fd` and holds it too. So the lock is free when, and only when,
 * neither the supervisor nor any process of its server is left, and the kernel sees to that after a kill -9 as well.
 */
export interface Lock {
  readonly fd: number;
  release(): void;
}

/** Waits up to `waitMs`; undefined if somebody else still holds the lock then. */
export async function acquireLock(
  file: string,
  { waitMs, signal }: { waitMs: number; signal?: AbortSignal | undefined },
): Promise<Lock | undefined> {
  const fd = openSync(file, 'a+', 0o600);
  try {
    const wait = waitMs === 0 ? ['--nonblock'] : ['--wait', String(waitMs / 1000)];
    const args = ['--exclusive', '--conflict-exit-code', String(CONFLICT_EXIT_CODE), ...wait, LOCK_FD];
    const { code, output } = await runProgram(
      { program: 'flock', args, owner: undefined },
      { lockFd: fd, timeoutMs: waitMs + FLOCK_GRACE_MS, signal },
    );
    if (code === 0) {
      await writeFile(file, describeHolder(process.pid));
      return { fd, release: () => closeSync(fd) };
    }
    if (code !== CONFLICT_EXIT_CODE) throw lockFailed(file, output);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return undefined;
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

function lockFailed(file: string, output: string): AppError {
  return new AppError(
    'DATABASE_NOT_RUNNABLE',
    `The lock ${file} could not be taken: ${output.trim() || 'flock failed'}. The embedded database needs flock and setpriv of util-linux; or set DATABASE_URL to a PostgreSQL server.`,
  );
}
