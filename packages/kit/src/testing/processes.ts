import type { ChildProcess } from 'node:child_process';
import { type EventEmitter, once } from 'node:events';
import type { Heard } from './heard.ts';

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

/**
 * What is waited for of a process, such as a line that says that it is ready. Rejects where the process cannot be started, ends before
 * that, or has ended: nobody waits for what never comes.
 * @param what it is, for the error
 * @param heard what it prints, by `hear`: the error says that, too
 */
export async function beforeEnd<T>(
  awaited: Promise<T>,
  child: ChildProcess,
  what: string,
  heard?: Heard,
): Promise<T> {
  const over = new AbortController();
  const ended = hasEnded(child) ? Promise.resolve() : once(child, 'exit', { signal: over.signal });
  try {
    const first = await Promise.race([awaited.then((value) => ({ value })), ended.then(() => undefined)]);
    if (first) return first.value;
  } finally {
    over.abort();
  }
  // What comes while its last words are read comes of no process that is ready.
  const words = heard ? `; its last words:\n${await heard.lastWords()}` : '';
  throw new Error(`${what} ended with ${child.exitCode ?? child.signalCode} before it was ready${words}`);
}

/** The first of these events of a process or of its output. */
async function firstOf(source: EventEmitter, event: string, ...process: Process): Promise<unknown> {
  const over = new AbortController();
  try {
    const [first] = await beforeEnd(once(source, event, { signal: over.signal }), ...process);
    return first;
  } finally {
    over.abort();
  }
}

/** As `beforeEnd` has it. */
type Process = [child: ChildProcess, what: string, heard?: Heard];

/** The first message of a process, such as a daemon's that it serves. Rejects as `beforeEnd` does. */
export const awaitReady = async <T = unknown>(...process: Process): Promise<T> =>
  (await firstOf(process[0], 'message', ...process)) as T;

/** The first that a process prints on its standard output, a pipe. Rejects as `beforeEnd` does. */
export const awaitOutput = async (...process: Process): Promise<string> =>
  String(await firstOf(process[0].stdout!, 'data', ...process));

/** Sends the signal, and resolves when the process is gone; at once where it was, or never came to be. */
export async function endProcess(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}
