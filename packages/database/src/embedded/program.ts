import { type ChildProcess, spawn } from 'node:child_process';

/** Where the tools of util-linux are. Our own environment is not passed on: it may hold secrets, and PG* settings. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const OUTPUT_CHARS_MAX = 64_000;

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  /** Whom to become first; root only. */
  readonly owner: Owner | undefined;
}

export interface ProgramOptions {
  /** A directory of shared libraries to search first. */
  readonly libraryPath?: string | undefined;
  /** Passed on as descriptor 3. */
  readonly lockFd?: number | undefined;
}

export interface ProgramResult {
  /** null when a signal ended the program or it could not be started. */
  readonly code: number | null;
  /** Standard output and error, in the order of arrival, or why the program could not be started. */
  readonly output: string;
}

/** Starts a program in its own process group, so that Ctrl-C at a terminal reaches us alone. */
export function spawnProgram(command: Command, options: ProgramOptions = {}): ChildProcess {
  const env: Record<string, string> = { PATH, LC_ALL: 'C', TZ: 'UTC' };
  if (options.libraryPath !== undefined) env.LD_LIBRARY_PATH = options.libraryPath;
  return spawn(command.program, [...command.args], {
    cwd: '/',
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', options.lockFd ?? 'ignore'],
    ...(command.owner === undefined ? {} : command.owner),
  });
}

/** Runs a program to its end. Never throws for what the program does; aborting the signal kills it. */
export async function runProgram(
  command: Command,
  options: ProgramOptions & { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<ProgramResult> {
  options.signal?.throwIfAborted();
  const child = spawnProgram(command, options);
  const result = Promise.withResolvers<ProgramResult>();
  let output = '';
  const collect = (chunk: Buffer): void => {
    output = (output + chunk.toString('utf8')).slice(-OUTPUT_CHARS_MAX);
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  child.once('error', (error) => result.resolve({ code: null, output: error.message }));
  child.once('close', (code) => result.resolve({ code, output }));
  const kill = (): void => {
    child.kill('SIGKILL');
  };
  const timer = setTimeout(kill, options.timeoutMs);
  options.signal?.addEventListener('abort', kill);
  try {
    const ended = await result.promise;
    options.signal?.throwIfAborted();
    return ended;
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', kill);
  }
}
