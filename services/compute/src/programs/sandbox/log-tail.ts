import { LineCutter } from '../../host/line-cutter.ts';
import { PROGRAM_LIMITS } from '../limits.ts';

/** What says something in a log: a stream of the program, or the node itself, of the program. */
export type LogStream = 'stdout' | 'stderr' | 'system';

/** A line, and when it came, milliseconds since 1970. */
export interface LogLine {
  readonly atMs: number;
  readonly type: LogStream;
  readonly text: string;
}

/** One stream of one sandbox: its lines stay whole, whatever other sandboxes write meanwhile. */
export interface LogWriter {
  write(bytes: Uint8Array): void;
  /** What came without its end is a line: something else follows, or nothing. */
  finish(): void;
  /** No more comes. */
  close(): void;
}

interface LogListener {
  tell(line: LogLine): void;
  end(): void;
}

/** The end of what a program wrote, over all of its sandboxes. */
export class LogTail {
  readonly #lines: LogLine[] = [];
  readonly #open = new Map<LineCutter, LogStream>();
  readonly #listeners = new Set<LogListener>();
  #isEnded = false;
  #chars = 0;

  /** Whether something may be written to it yet, or somebody follows it. */
  get isInUse(): boolean {
    return this.#open.size > 0 || this.#listeners.size > 0;
  }

  /** Adds a text that is whole: each of its lines. */
  add(type: LogStream, text: string): void {
    this.#keep(
      type,
      text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => line.slice(0, PROGRAM_LIMITS.logLineChars)),
    );
  }

  open(type: LogStream): LogWriter {
    const cutter = new LineCutter(PROGRAM_LIMITS.logLineChars);
    this.#open.set(cutter, type);
    const finish = () => this.#keep(type, cutter.finish());
    return {
      write: (bytes) => this.#keep(type, cutter.push(bytes)),
      finish,
      close: () => {
        finish();
        this.#open.delete(cutter);
      },
    };
  }

  /** Oldest first; last, what has not ended its line yet. */
  list(): readonly LogLine[] {
    const atMs = Date.now();
    const begun = [...this.#open].map(([{ rest: text }, type]) => ({ atMs, type, text }));
    return [...this.#lines, ...begun.filter(({ text }) => text !== '')];
  }

  /**
   * Tells of every line from now on. Returns how to stop; undefined when too many listen already.
   * @param end called when none comes any more, at once where that is so already: who is to listen is asked who they are first
   */
  listen(tell: (line: LogLine) => void, end: () => void = () => {}): (() => void) | undefined {
    if (this.#isEnded) {
      end();
      return () => {};
    }
    if (this.#listeners.size >= PROGRAM_LIMITS.logReaders) return undefined;
    const listener = { tell, end };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The program was forgotten: those who listen hear nothing else. */
  end(): void {
    this.#isEnded = true;
    for (const { end } of this.#listeners) end();
    this.#listeners.clear();
  }

  #keep(type: LogStream, texts: readonly string[]): void {
    if (texts.length === 0) return;
    const { logTailChars, logTailLines } = PROGRAM_LIMITS;
    const atMs = Date.now();
    this.#tell(type, texts, atMs);
    for (const text of texts.slice(-logTailLines)) {
      this.#lines.push({ atMs, type, text });
      this.#chars += text.length;
    }
    let gone = 0;
    while (this.#chars > logTailChars || this.#lines.length - gone > logTailLines)
      this.#chars -= this.#lines[gone++]!.text.length;
    // At once: each that is taken off alone moves all others.
    this.#lines.splice(0, gone);
  }

  /** Whoever listens has work with each line: a program that writes nothing but ends of lines makes no more of it. */
  #tell(type: LogStream, texts: readonly string[], atMs: number): void {
    if (this.#listeners.size === 0) return;
    const told = texts.slice(-PROGRAM_LIMITS.logLinesTold).map((text): LogLine => ({ atMs, type, text }));
    const left = texts.length - told.length;
    if (left > 0) told.unshift({ atMs, type: 'system', text: `${left} lines of ${type} were left out here` });
    for (const { tell } of this.#listeners) for (const line of told) tell(line);
  }
}
