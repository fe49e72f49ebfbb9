import { appendFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { linesBefore, openIfAny } from '@skerry/kit';
import { LineCutter } from '../../host/line-cutter.ts';

/** One line of a guest's serial console, and when it was read, milliseconds since 1970. */
export interface ConsoleLine {
  readonly atMs: number;
  readonly text: string;
  /** The node's own word of the guest, for those who listen: it is not kept. */
  readonly isNodes?: true;
}

interface Listener {
  tell(line: ConsoleLine): void;
  end(): void;
}

const OLDER = 'console.1.log';
const NEWER = 'console.log';
/** Two files of this size: a guest that prints without end cannot fill the host's disk. */
export const CONSOLE_FILE_BYTES_MAX = 512 * 1024;
const LINE_CHARS_MAX = 4_096;
const LISTENERS_MAX = 16;
/** Of what is read at once so many lines are kept, the last ones: a guest that prints nothing but ends of lines makes no more work of them. */
export const LINES_KEPT_MAX = 4_096;
/** All listeners together are told of so many of these: each line is work for each of them. */
export const LINES_TOLD_MAX = 4_096;

/** What a guest said on its serial console, kept in files beside its disk, so that it can be read when the guest is off. */
export class ConsoleLog {
  readonly #directory: string;
  readonly #now: () => number;
  readonly #cutter = new LineCutter(LINE_CHARS_MAX);
  readonly #listeners = new Set<Listener>();
  #isEnded = false;
  #note = '';
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

  /**
   * The last lines, oldest first. No more is read than has them: who asks again and again would have a megabyte read each time. One reading
   * is at a time, between what is written.
   */
  read(limit: number): Promise<ConsoleLine[]> {
    const reading = this.#turn.then(() => this.#readLast(limit));
    this.#turn = reading.then(
      () => {},
      () => {},
    );
    return reading;
  }

  async #readLast(limit: number): Promise<ConsoleLine[]> {
    const lines: ConsoleLine[] = [];
    for (const name of [NEWER, OLDER]) {
      await using file = await openIfAny(join(this.#directory, name));
      if (file === undefined) continue;
      const { size } = await file.stat();
      for await (const text of linesBefore(file, size)) {
        const line = parseLine(text);
        if (line && lines.push(line) === limit) return lines.reverse();
      }
    }
    return lines.reverse();
  }

  /**
   * Tells of every line from now on. Returns how to stop; undefined when too many listen already.
   * @param end called when none comes any more, at once where that is so already: who is to listen is asked who they are first
   */
  listen(tell: (line: ConsoleLine) => void, end: () => void = () => {}): (() => void) | undefined {
    if (this.#isEnded) {
      end();
      return () => {};
    }
    if (this.#listeners.size >= LISTENERS_MAX) return undefined;
    const listener = { tell, end };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells those who listen what becomes of the guest: once, however often it is said in a row. */
  note(text: string): void {
    if (text === this.#note) return;
    this.#note = text;
    for (const { tell } of this.#listeners) tell({ atMs: this.#now(), text, isNodes: true });
  }

  /** The guest is this node's no more: those who listen hear nothing else. */
  end(): void {
    this.#isEnded = true;
    for (const { end } of this.#listeners) end();
    this.#listeners.clear();
  }

  #keep(texts: readonly string[]): Promise<void> {
    const atMs = this.#now();
    this.#tell(texts, atMs);
    const text = lastOf(texts, LINES_KEPT_MAX)
      .map((line) => `${atMs} ${line}\n`)
      .join('');
    this.#turn = this.#turn.then(() => this.#write(text)).catch(() => {});
    return this.#turn;
  }

  #tell(texts: readonly string[], atMs: number): void {
    const max = Math.floor(LINES_TOLD_MAX / Math.max(1, this.#listeners.size));
    const lines = this.#listeners.size > 0 ? lastOf(texts, max).map((text) => ({ atMs, text })) : [];
    for (const { tell } of this.#listeners) for (const line of lines) tell(line);
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

/** The last of many lines, behind how many are not among them. */
const lastOf = (texts: readonly string[], max: number): readonly string[] =>
  texts.length > max ? [`[${texts.length - max} lines are left out here]`, ...texts.slice(-max)] : texts;

/** What is no line was cut while it was written. A guest may print returns, and other ends of lines, within one. */
function parseLine(line: string): ConsoleLine | undefined {
  const found = /^([0-9]{1,16}) (.*)$/s.exec(line);
  return found ? { atMs: Number(found[1]), text: found[2]! } : undefined;
}
