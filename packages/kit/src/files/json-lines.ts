import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import type { Logger } from '../daemon/log.ts';
import { isMissing, syncDirectory, writeFileAtomically } from './atomic-file.ts';

const MODE = 0o600;
const READ_BYTES = 64 * 1024;
const LINE_BYTES_MAX = 1024 * 1024;
/** A file that is smaller is not worth being written anew. */
const COMPACT_BYTES = 4 * 1024 * 1024;
const LINE_END = 0x0a;

export interface JsonLinesOptions<T> {
  readonly path: string;
  /** What a line says; undefined for one that says nothing. */
  readonly parse: (value: unknown) => T | undefined;
  readonly log: Logger;
  /**
   * The lines that still count. With it, a file is written anew when it has twice the size that it had after the last time.
   * It is asked between two appends, and nothing is appended until what it gave is on the disk.
   */
  readonly live?: (() => Iterable<T> | Promise<Iterable<T>>) | undefined;
  /** From which size on a file is written anew. */
  readonly compactBytes?: number | undefined;
  readonly lineBytesMax?: number | undefined;
}

interface Content<T> {
  readonly lines: T[];
  readonly bytes: number;
  /** Lines that say nothing: cut off by a kill, or damaged. */
  readonly lost: number;
  /** Whether the last line has its end. */
  readonly isWhole: boolean;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function parseLine<T>(bytes: Uint8Array, parse: (value: unknown) => T | undefined): T | undefined {
  try {
    return parse(JSON.parse(decoder.decode(bytes)));
  } catch {
    return undefined;
  }
}

/** The lines of a file, without their ends, and last what has none. Of a line beyond `lineBytesMax`, only its beginning. */
async function* splitLines(path: string, lineBytesMax: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r');
  try {
    let rest = Buffer.alloc(0);
    for await (const chunk of file.createReadStream({ highWaterMark: READ_BYTES, autoClose: false })) {
      const bytes = Buffer.concat([rest, chunk as Buffer]);
      let from = 0;
      for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, from)) {
        yield bytes.subarray(from, end);
        from = end + 1;
      }
      rest = bytes.subarray(from, from + lineBytesMax + 1);
    }
    yield rest;
  } finally {
    await file.close();
  }
}

async function readContent<T>({
  path,
  parse,
  lineBytesMax = LINE_BYTES_MAX,
}: JsonLinesOptions<T>): Promise<Content<T>> {
  const content = { lines: [] as T[], bytes: 0, lost: 0, isWhole: true };
  try {
    for await (const bytes of splitLines(path, lineBytesMax)) {
      content.bytes += bytes.length + 1;
      content.isWhole = bytes.length === 0;
      if (bytes.length === 0) continue;
      const line = bytes.length > lineBytesMax ? undefined : parseLine(bytes, parse);
      if (line === undefined) content.lost++;
      else content.lines.push(line);
    }
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  return content;
}

interface Batch {
  readonly text: string;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A journal: a file with a JSON value in each line, written by one process. A line is whole or it is not there: a kill or a
 * power cut at any byte loses nothing that was appended before, and what it cut off is left out. Of lines that are appended
 * together, the first ones may be kept alone.
 */
export class JsonLines<T> {
  readonly #options: JsonLinesOptions<T>;
  #waiting: Batch[] = [];
  #turn: Promise<void> = Promise.resolve();
  /** Whether the file's name survives a power cut. One that is found proves nothing: its maker may have died before. */
  #isNamed = false;
  /** Whether the file may end within a line. */
  #isTorn: boolean;
  #bytes: number;
  #compactAt: number;

  private constructor(options: JsonLinesOptions<T>, { bytes, isWhole }: Content<T>) {
    this.#options = options;
    this.#isTorn = !isWhole;
    this.#bytes = bytes;
    this.#compactAt = Math.max(this.#compactBytes, 2 * bytes);
  }

  /** The journal, and what is in it. The directory must be there; the file is made by the first append. */
  static async open<T>(
    options: JsonLinesOptions<T>,
  ): Promise<{ readonly journal: JsonLines<T>; readonly lines: readonly T[] }> {
    const content = await readContent(options);
    const { path, log } = options;
    if (content.lost > 0) log.warn({ path, lines: content.lost }, 'skipping incomplete lines');
    return { journal: new JsonLines(options, content), lines: content.lines };
  }

  get #compactBytes(): number {
    return this.#options.compactBytes ?? COMPACT_BYTES;
  }

  /** When it resolves, the lines survive a power cut. Appends at the same time share one. Throws for a line that is too long. */
  async append(lines: readonly T[]): Promise<void> {
    if (lines.length === 0) return;
    const text = this.#encode(lines);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ text, done: resolve, failed: reject });
    if (this.#waiting.length === 1) void this.#next(() => this.#writeWaiting());
    return promise;
  }

  /** Leaves in the file what `live` gives; without it, all that is there. */
  compact(): Promise<void> {
    return this.#next(() => this.#compact());
  }

  /** One after the other: a line that is added while the file is written anew would be lost. */
  #next(body: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(body);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  #encode(lines: Iterable<T>): string {
    const { path, lineBytesMax = LINE_BYTES_MAX } = this.#options;
    let text = '';
    for (const line of lines) {
      const one = JSON.stringify(line);
      if (Buffer.byteLength(one) > lineBytesMax)
        throw new AppError('INTERNAL', `a line of ${path} is limited to ${lineBytesMax} bytes`);
      text += `${one}\n`;
    }
    return text;
  }

  async #writeWaiting(): Promise<void> {
    const batches = this.#waiting;
    this.#waiting = [];
    try {
      await this.#write(batches.map(({ text }) => text).join(''));
      for (const { done } of batches) done();
    } catch (error) {
      for (const { failed } of batches) failed(error);
      return;
    }
    if (this.#options.live && this.#bytes > this.#compactAt) await this.#compactSoon();
  }

  async #write(text: string): Promise<void> {
    const { path } = this.#options;
    const whole = this.#isTorn ? `\n${text}` : text;
    const file = await open(path, 'a', MODE);
    try {
      // Until all of it is there, a part may be.
      this.#isTorn = true;
      await file.appendFile(whole);
      await file.datasync();
    } finally {
      await file.close();
    }
    if (!this.#isNamed) await syncDirectory(dirname(path));
    this.#isNamed = true;
    this.#isTorn = false;
    this.#bytes += Buffer.byteLength(whole);
  }

  /** What was appended is safe, whether or not the file becomes smaller now. */
  async #compactSoon(): Promise<void> {
    const { path, log } = this.#options;
    try {
      await this.#compact();
    } catch (error) {
      this.#compactAt = 2 * this.#bytes;
      log.warn({ err: error, path }, 'a journal could not be compacted and keeps growing');
    }
  }

  async #compact(): Promise<void> {
    const { path, live } = this.#options;
    if (!live) return;
    const text = this.#encode(await live());
    await writeFileAtomically(path, text, MODE);
    this.#isNamed = true;
    this.#isTorn = false;
    this.#bytes = Buffer.byteLength(text);
    this.#compactAt = Math.max(this.#compactBytes, 2 * this.#bytes);
  }
}
