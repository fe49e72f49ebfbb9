import { appendFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readTextIfAny } from '@skerry/kit';
import { LineCutter } from '../../host/line-cutter.ts';

/** One line of a guest's serial console, and when it was read, milliseconds since 1970. */
export interface ConsoleLine {
  readonly atMs: number;
  readonly text: string;
}

const CONSOLE_FILES = ['console.1.log', 'console.log'] as const;
const [OLDER, NEWER] = CONSOLE_FILES;
/** Two files of this size: a guest that prints without end cannot fill the host's disk. */
export const CONSOLE_FILE_BYTES_MAX = 512 * 1024;
const LINE_CHARS_MAX = 4_096;
const LISTENERS_MAX = 16;

/** What a guest said on its serial console, kept in files beside its disk, so that it can be read when the guest is off. */
export class ConsoleLog {
  readonly #directory: string;
  readonly #now: () => number;
  readonly #cutter = new LineCutter(LINE_CHARS_MAX);
  readonly #listeners = new Set<(line: ConsoleLine) => void>();
  #turn: Promise<void> = Promise.resolve();

  constructor(directory: string, now: () => number) {
    this.#directory = directory;
    this.#now = now;
  }

  /** Adds bytes, however they are cut. Whole lines are kept; a line that does not end is cut at its limit. */
  append(bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0) return this.#turn;
    return this.#keep(this.#cutter.push(bytes));
  }

  /** Keeps what came without its end: nothing follows it. */
  finish(): Promise<void> {
    const lines = this.#cutter.finish();
    return lines.length === 0 ? this.#turn : this.#keep(lines);
  }

  /** The last lines, oldest first. */
  async read(limit: number): Promise<ConsoleLine[]> {
    await this.#turn;
    const texts = await Promise.all(CONSOLE_FILES.map((name) => readTextIfAny(join(this.#directory, name))));
    return texts.join('').split('\n').flatMap(parseLine).slice(-limit);
  }

  /** Tells of every line from now on. Returns how to stop; undefined when too many listen already. */
  listen(listener: (line: ConsoleLine) => void): (() => void) | undefined {
    if (this.#listeners.size >= LISTENERS_MAX) return undefined;
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #keep(texts: readonly string[]): Promise<void> {
    const atMs = this.#now();
    const lines = texts.map((text) => ({ atMs, text }));
    for (const line of lines) for (const listener of this.#listeners) listener(line);
    const text = lines.map((line) => `${line.atMs} ${line.text}\n`).join('');
    this.#turn = this.#turn.then(() => this.#write(text)).catch(() => {});
    return this.#turn;
  }

  async #write(text: string): Promise<void> {
    const path = join(this.#directory, NEWER);
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    if (size > CONSOLE_FILE_BYTES_MAX) await rename(path, join(this.#directory, OLDER));
    await appendFile(path, text, { mode: 0o600 });
  }
}

function parseLine(line: string): ConsoleLine[] {
  const found = /^([0-9]{1,16}) (.*)$/.exec(line);
  return found ? [{ atMs: Number(found[1]), text: found[2]! }] : [];
}
