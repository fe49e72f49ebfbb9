import { spawn } from 'node:child_process';
import { AppError } from '@skerry/protocol';
import { programEnvironment } from '../config.ts';

/**
 * Holds an exclusive lock on a file across processes, also across network namespaces. The lock is held by a small child
 * (flock(1) of util-linux, keeping `cat` alive) and ends with this process, however it ends: the kernel closes the pipe.
 * @param onWait called once if another process holds the lock
 */
export async function acquireFileLock(
  path: string,
  signal: AbortSignal,
  onWait: () => void = () => {},
): Promise<AsyncDisposable> {
  const first = await tryLock(path, ['--nonblock'], signal);
  if (first) return first;
  onWait();
  const second = await tryLock(path, [], signal);
  if (second) return second;
  signal.throwIfAborted();
  throw new AppError('INTERNAL', `the lock ${path} could not be taken`);
}

/** undefined when another process has the lock and `--nonblock` was asked for. */
function tryLock(
  path: string,
  flags: readonly string[],
  signal: AbortSignal,
): Promise<AsyncDisposable | undefined> {
  const child = spawn('flock', [...flags, path, 'sh', '-c', 'echo held; exec cat >/dev/null'], {
    env: programEnvironment(),
    stdio: ['pipe', 'pipe', 'ignore'],
    signal,
    killSignal: 'SIGKILL',
  });
  child.stdin.on('error', () => {});
  return new Promise((resolve, reject) => {
    const ended = new Promise<void>((done) => child.once('close', () => done()));
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (signal.aborted) reject(signal.reason);
      else reject(error.code === 'ENOENT' ? new AppError('HOST_NOT_READY', 'flock is not installed') : error);
    });
    child.once('close', () => resolve(undefined));
    child.stdout.once('data', () =>
      resolve({
        async [Symbol.asyncDispose]() {
          child.stdin.end();
          await ended;
        },
      }),
    );
  });
}
