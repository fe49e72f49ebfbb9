import type { ChildProcess } from 'node:child_process';
import { type EventEmitter, once } from 'node:events';
import type { Heard } from './heard.ts';

/** The first of these events of a process or of its output; rejects where it cannot be started, or ends without one. */
async function firstOf(
  source: EventEmitter,
  event: string,
  child: ChildProcess,
  what: string,
  heard?: Heard,
) {
  const over = new AbortController();
  const { signal } = over;
  const ended = once(child, 'exit', { signal }).then(async ([code, killedBy]): Promise<never> => {
    const words = heard ? `; its last words:\n${await heard.lastWords()}` : '';
    throw new Error(`${what} ended with ${code ?? killedBy} before it was ready${words}`);
  });
  try {
    const [first] = await Promise.race([once(source, event, { signal }), ended]);
    return first as unknown;
  } finally {
    over.abort();
  }
}

/**
 * The first message of a process, such as a daemon's that it serves. Rejects where the process cannot be started, or ends without one:
 * nobody waits for a message that never comes.
 * @param what it is, for the error
 * @param heard what it prints, by `hear`: the error says that, too
 */
export const awaitReady = async <T = unknown>(child: ChildProcess, what: string, heard?: Heard): Promise<T> =>
  (await firstOf(child, 'message', child, what, heard)) as T;

/** The first that a process prints on its standard output, a pipe. Rejects as `awaitReady` does. */
export const awaitOutput = async (child: ChildProcess, what: string): Promise<string> =>
  String(await firstOf(child.stdout!, 'data', child, what));

/** Sends the signal, and resolves when the process is gone; at once where it was, or never came to be. */
export async function endProcess(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}
