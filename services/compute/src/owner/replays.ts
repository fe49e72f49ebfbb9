import { open } from 'node:fs/promises';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { readTextIfAny, writeFileAtomically } from '../host/atomic-file.ts';

/** So many operations of one owner are remembered; more within the window are refused rather than forgotten. */
const OWNER_SHARE_MAX = 1_000;
/** Lines of the file that mean nothing any more, before it is written anew. */
const STALE_LINES_MAX = 10_000;

export interface ReplaysOptions {
  /** How far the time of an operation may be from the node's, both ways. */
  readonly windowMs: number;
  /** Where operations outlive the process; in memory only where there is none. */
  readonly path?: string;
  readonly log?: Logger;
}

interface Line {
  readonly owner: string;
  readonly key: string;
  readonly until_ms: number;
}

function parseLine(text: string): Line | undefined {
  try {
    const { owner, key, until_ms: untilMs } = JSON.parse(text) as Partial<Line>;
    return typeof owner === 'string' && typeof key === 'string' && typeof untilMs === 'number'
      ? { owner, key, until_ms: untilMs }
      : undefined;
  } catch {
    // The last line of a process that was killed while it wrote.
    return undefined;
  }
}

/**
 * Operations that were carried out, for as long as their signature would be taken again. What is noted here was signed by
 * somebody who may do it: strangers have no place in it, and one owner cannot take another's.
 */
export class Replays {
  readonly #options: ReplaysOptions;
  readonly #seen = new Map<string, Map<string, number>>();
  #turn: Promise<unknown> = Promise.resolve();
  #lines = 0;
  #size = 0;

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** With what earlier lives of the node noted at `path`. */
  static async load(options: ReplaysOptions & { readonly path: string }, nowMs: number): Promise<Replays> {
    const replays = new Replays(options);
    const text = (await readTextIfAny(options.path)) ?? '';
    for (const line of text.split('\n')) {
      const known = parseLine(line);
      if (known && known.until_ms > nowMs) replays.#remember(known.owner, known.key, known.until_ms);
    }
    await replays.#rewrite();
    return replays;
  }

  /**
   * Notes an operation before it takes effect. Throws INVALID_SIGNATURE for one that was noted, RATE_LIMITED for an owner
   * with too many.
   * @param owner whose instance it is about
   * @param key the same for whatever spelling of the operation
   */
  async note(owner: string, key: string, nowMs: number): Promise<void> {
    const own = this.#forgetPast(owner, nowMs);
    if (own?.has(key))
      throw new AppError('INVALID_SIGNATURE', 'this very operation was asked for before; sign it anew');
    if (own && own.size >= OWNER_SHARE_MAX)
      throw new AppError(
        'RATE_LIMITED',
        `an owner may ask for ${OWNER_SHARE_MAX} changes in ${(2 * this.#options.windowMs) / 60_000} minutes`,
      );
    // One signed ahead of the node's clock is good for a window after its own time.
    const untilMs = nowMs + 2 * this.#options.windowMs;
    this.#remember(owner, key, untilMs);
    try {
      // One after the other: a line that is added while the file is written anew would be lost.
      const turn = this.#turn.then(() => this.#append({ owner, key, until_ms: untilMs }, nowMs));
      this.#turn = turn.catch(() => {});
      await turn;
    } catch (error) {
      // A full disk must not keep its owner from making room. The process still remembers.
      this.#options.log?.warn({ err: error }, 'an operation was not written down; it counts until a restart');
    }
  }

  #forgetPast(owner: string, nowMs: number): Map<string, number> | undefined {
    const own = this.#seen.get(owner);
    if (!own) return undefined;
    for (const [key, untilMs] of own) {
      if (untilMs > nowMs) break;
      own.delete(key);
      this.#size--;
    }
    if (own.size > 0) return own;
    this.#seen.delete(owner);
    return undefined;
  }

  #remember(owner: string, key: string, untilMs: number): void {
    const own = this.#seen.get(owner) ?? new Map<string, number>();
    own.set(key, untilMs);
    this.#seen.set(owner, own);
    this.#size++;
  }

  async #append(line: Line, nowMs: number): Promise<void> {
    const { path } = this.#options;
    if (path === undefined) return;
    if (this.#lines - this.#size > STALE_LINES_MAX) {
      for (const owner of [...this.#seen.keys()]) this.#forgetPast(owner, nowMs);
      return this.#rewrite();
    }
    const file = await open(path, 'a', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(line)}\n`);
      await file.datasync();
    } finally {
      await file.close();
    }
    this.#lines++;
  }

  async #rewrite(): Promise<void> {
    const { path } = this.#options;
    if (path === undefined) return;
    const lines = [...this.#seen].flatMap(([owner, own]) =>
      [...own].map(([key, untilMs]) => JSON.stringify({ owner, key, until_ms: untilMs })),
    );
    await writeFileAtomically(path, lines.map((line) => `${line}\n`).join(''), 0o600);
    this.#lines = lines.length;
  }
}
