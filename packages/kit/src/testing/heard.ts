import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';

/** Of what a program printed last, so many lines are told again: a runner's closing lines have room for these, and for what stands before. */
const LAST_LINES = 14;
const LINE_CHARS_MAX = 400;
/** More of it is not kept. */
const TAIL_CHARS_MAX = 256 * 1024;
/** What it has printed arrives within this time, also where what it left behind has its pipes. */
const DRAIN_MS = 1_000;

/** How far it is, as scenarios say it: `[12.3 s] the disk is full`. */
const isStep = (line: string) => /^\[ *[0-9.]+ s\] /.test(line);
/** Why it fails, as Node prints it. */
const isError = (line: string) => /^(?:Uncaught )?\w*(?:Error|Exception)(?: \[\w+\])?(?::|$)/.test(line);

const cut = (line: string) => (line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}…` : line);

/**
 * What a program's output says of its end, in few lines: the step that it was in and its last error where they stand further above, and
 * then its last lines. Pure.
 * @param text the end of its output
 */
export function lastWordsOf(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const last = lines.slice(-LAST_LINES);
  const above = lines.slice(0, -LAST_LINES);
  const missing = [isStep, isError].flatMap((is) => (last.some(is) ? [] : (above.findLast(is) ?? [])));
  return [...missing, ...(missing.length > 0 ? ['[…]'] : []), ...last].map(cut).join('\n');
}

/** The end of what a process prints. */
export interface Heard {
  /** In few lines, `(none)` where it printed nothing; to be asked when it has ended. */
  lastWords(): Promise<string>;
}

/**
 * Shows what a process prints as it comes, as far as its outputs are pipes, and keeps the end. What it leaves behind may have them for as
 * long as it likes: nobody waits for that.
 * @param outputs which are heard: what else it prints is left to whoever reads it
 */
export function hear(
  child: ChildProcess,
  outputs: readonly ('stdout' | 'stderr')[] = ['stdout', 'stderr'],
): Heard {
  let tail = '';
  const pass = (from: (Readable & { unref?(): void }) | null, to: NodeJS.WritableStream) => {
    from?.unref?.();
    from?.setEncoding('utf8').on('data', (text: string) => {
      to.write(text);
      tail = (tail + text).slice(-TAIL_CHARS_MAX);
    });
  };
  for (const output of outputs) pass(child[output], process[output]);
  const over = new AbortController();
  child.once('close', () => over.abort());
  const lastWords = async () => {
    // What is in the pipes is read after timers, also where this process itself stood still for as long.
    await delay(DRAIN_MS, undefined, { signal: over.signal })
      .then(() => setImmediate())
      .catch(() => {});
    return lastWordsOf(tail) || '(none)';
  };
  return { lastWords };
}
