import { type FileHandle, stat } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import { pause } from '@skerry/kit';
import { linesBefore, openIfAny } from '@skerry/kit/files';
import { type LogLine, timeOf, type Wanted } from './line.ts';

/** The logs that a devnet keeps (devnet/src/log-file.ts): `core.log`, and `core.log.1`, `core.log.2` before it. */

const BLOCK_BYTES = 256 * 1024;
/** How soon a new line shows. */
const LOOK_EVERY_MS = 200;
/** Older files of a log. */
const AGES = [1, 2];

/** The last lines of a log, and where whoever follows it goes on. */
export interface Tail {
  /** The oldest first. */
  readonly lines: readonly LogLine[];
  readonly endByte: number;
}

/** The files of a log, the newest first: each once, though they may move meanwhile. */
async function* filesOf(path: string): AsyncGenerator<{ file: FileHandle; sizeBytes: number }> {
  const seen = new Set<number>();
  for (const name of [path, ...AGES.map((age) => `${path}.${age}`)]) {
    await using file = await openIfAny(name);
    if (file === undefined) continue;
    const { ino, size } = await file.stat();
    if (!seen.has(ino)) yield { file, sizeBytes: size };
    seen.add(ino);
  }
}

/** Lines without a time of their own get that of the line before them. @param firstMs of those that no line is before */
function withTimes(daemon: string, texts: readonly string[], firstMs: number): LogLine[] {
  let timeMs = firstMs;
  return texts.map((text) => {
    timeMs = timeOf(text) ?? timeMs;
    return { daemon, timeMs, text };
  });
}

/** Reads a log from its end, no further back than is wanted. */
export async function readTail(daemon: string, path: string, wanted: Wanted): Promise<Tail> {
  const texts: string[] = [];
  let endByte: number | undefined;
  const isOver = (text: string) =>
    wanted.sinceMs !== undefined && (timeOf(text) ?? wanted.sinceMs) < wanted.sinceMs;
  read: for await (const { file, sizeBytes } of filesOf(path)) {
    endByte ??= sizeBytes;
    for await (const text of linesBefore(file, sizeBytes)) {
      if (texts.length >= wanted.linesMax || isOver(text)) break read;
      if (text !== '') texts.push(text);
    }
  }
  texts.reverse();
  // What comes first without a time belongs to a line that was cut off, or is all that a daemon said that did not start.
  const firstMs = texts.map(timeOf).find((timeMs) => timeMs !== undefined) ?? Date.now();
  return { lines: withTimes(daemon, texts, firstMs), endByte: endByte ?? 0 };
}

/** What a file has beyond a byte, in whole lines. */
class Follower {
  #at: number;
  #rest = '';
  readonly #decoder = new StringDecoder('utf8');

  constructor(at: number) {
    this.#at = at;
  }

  async *next(file: FileHandle): AsyncGenerator<string> {
    const buffer = Buffer.alloc(BLOCK_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, BLOCK_BYTES, this.#at);
      if (bytesRead === 0) return;
      this.#at += bytesRead;
      const lines = `${this.#rest}${this.#decoder.write(buffer.subarray(0, bytesRead))}`.split('\n');
      this.#rest = lines.pop()!;
      yield* lines.filter((line) => line !== '');
    }
  }
}

/** Gives new lines as they come, until the signal; a log that begins a new file is followed there. */
export async function followFile(
  { daemon, path, endByte }: { readonly daemon: string; readonly path: string; readonly endByte: number },
  print: (line: LogLine) => void,
  signal: AbortSignal,
): Promise<void> {
  let from = endByte;
  while (!signal.aborted) {
    await using file = await openIfAny(path);
    if (file !== undefined) {
      const { ino } = await file.stat();
      const follower = new Follower(from);
      let isLast = false;
      for (;;) {
        for await (const text of follower.next(file))
          print({ daemon, timeMs: timeOf(text) ?? Date.now(), text });
        if (isLast || signal.aborted) break;
        // What came before the file moved is read once more.
        isLast = (await stat(path).catch(() => undefined))?.ino !== ino;
        if (!isLast) await pause(LOOK_EVERY_MS, signal);
      }
      from = 0;
    } else await pause(LOOK_EVERY_MS, signal);
  }
}
