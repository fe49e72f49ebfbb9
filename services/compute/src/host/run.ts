import { spawn } from 'node:child_process';
import { programEnvironment } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { saysDiskFull } from './disk-full.ts';

export interface RunOptions {
  readonly input?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly cwd?: string | undefined;
  readonly timeoutMs?: number;
  /** Added to kit's `programEnvironment`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Told of every line that the program writes on standard error. */
  readonly onErrorLine?: (line: string) => void;
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** What is kept of each of a program's outputs. */
const OUTPUT_LIMIT_CHARS = 4 * 1024 * 1024;
const ERROR_TAIL_CHARS = 2_000;

/**
 * Runs a program to its end and gives its standard output. No shell is involved.
 * Throws HOST_NOT_READY when the program is not installed, INTERNAL when it fails, with the end of what it complained;
 * STORAGE_FULL where that is a full disk.
 */
export async function run(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { input, signal, cwd, timeoutMs = DEFAULT_TIMEOUT_MS, env = {}, onErrorLine } = options;
  signal?.throwIfAborted();
  const timeout = AbortSignal.timeout(timeoutMs);
  const child = spawn(program, [...args], {
    cwd,
    env: { ...programEnvironment(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    killSignal: 'SIGKILL',
  });
  // It has no streams where it could not be started for want of descriptors, which is told as an error.
  child.stdin?.on('error', () => {
    // A program that ends without reading everything says why by its exit code.
  });
  child.stdin?.end(input ?? '');
  let output = '';
  let errors = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < OUTPUT_LIMIT_CHARS) output += text;
  });
  const lines = splitLines((line) => onErrorLine?.(line));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-OUTPUT_LIMIT_CHARS);
    lines(text);
  });
  return new Promise((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (signal?.aborted) reject(signal.reason);
      else if (timeout.aborted)
        reject(new AppError('TIMED_OUT', `${program} did not finish within ${timeoutMs} ms`));
      else if (error.code === 'ENOENT') reject(new AppError('HOST_NOT_READY', `${program} is not installed`));
      else reject(error);
    });
    child.on('close', (code, exitSignal) => {
      if (code === 0) resolve(output);
      else reject(failureOf(program, args, code, exitSignal, errors));
    });
  });
}

function failureOf(
  program: string,
  args: readonly string[],
  code: number | null,
  signal: string | null,
  errors: string,
): AppError {
  const tail = errors.trim().slice(-ERROR_TAIL_CHARS);
  const how = code === null ? `was killed by ${signal}` : `failed with code ${code}`;
  const errorCode = saysDiskFull(tail) ? 'STORAGE_FULL' : 'INTERNAL';
  return new AppError(errorCode, `${program} ${how}${tail === '' ? '' : `: ${tail}`}`, {
    details: { program, args: args.slice(0, 64), code },
  });
}

/** A function that takes text as it comes and calls back once for every complete line. */
function splitLines(onLine: (line: string) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const parts = (rest + text).split(/[\r\n]+/);
    rest = (parts.pop() ?? '').slice(-ERROR_TAIL_CHARS);
    for (const part of parts) if (part !== '') onLine(part);
  };
}
