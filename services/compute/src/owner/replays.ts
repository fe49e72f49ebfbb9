import { JsonLines, type Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

/** So many operations of one owner are remembered; more within the window are refused rather than forgotten. */
const OWNER_SHARE_MAX = 1_000;

export interface ReplaysOptions {
  /** How far the time of an operation may be from the node's, both ways. */
  readonly windowMs: number;
}

interface Line {
  readonly owner: string;
  readonly key: string;
  readonly until_ms: number;
}

function parseLine(value: unknown): Line | undefined {
  const { owner, key, until_ms } = value as Partial<Line>;
  return typeof owner === 'string' && typeof key === 'string' && typeof until_ms === 'number'
    ? { owner, key, until_ms }
    : undefined;
}

/**
 * Operations that were carried out, for as long as their signature would be taken again. What is noted here was signed by
 * somebody who may do it: strangers have no place in it, and one owner cannot take another's.
 */
export class Replays {
  readonly #options: ReplaysOptions;
  readonly #seen = new Map<string, Map<string, number>>();
  #keeper: { readonly journal: JsonLines<Line>; readonly log: Logger } | undefined;
  /** The last time that was told. */
  #nowMs = 0;

  /** In memory only. */
  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** With what earlier lives of the node noted at `path`; what is noted from now on outlives the process. */
  static async load(options: ReplaysOptions, path: string, log: Logger, nowMs: number): Promise<Replays> {
    const replays = new Replays(options);
    const live = () => replays.#live();
    const { journal, lines } = await JsonLines.open({ path, parse: parseLine, log, live });
    replays.#nowMs = nowMs;
    for (const { owner, key, until_ms: untilMs } of lines)
      if (untilMs > nowMs) replays.#remember(owner, key, untilMs);
    replays.#keeper = { journal, log };
    await journal.compact().catch((error: unknown) => {
      log.warn(
        { err: error, path },
        'operations that count no more could not be removed; trying again later',
      );
    });
    return replays;
  }

  /**
   * Notes an operation before it takes effect. Throws INVALID_SIGNATURE for one that was noted, RATE_LIMITED for an owner
   * with too many.
   * @param owner whose instance it is about
   * @param key the same for whatever spelling of the operation
   */
  async note(owner: string, key: string, nowMs: number): Promise<void> {
    this.#nowMs = nowMs;
    const own = this.#forgetPast(owner, nowMs);
    if (own?.has(key))
      throw new AppError('INVALID_SIGNATURE', 'this operation was already requested; sign a new one');
    if (own && own.size >= OWNER_SHARE_MAX) {
      const [freeAtMs = nowMs] = own.values();
      throw new AppError(
        'RATE_LIMITED',
        `an owner can request ${OWNER_SHARE_MAX} changes in ${(2 * this.#options.windowMs) / 60_000} minutes`,
        { details: { retry_after: Math.max(1, Math.ceil((freeAtMs - nowMs) / 1_000)) } },
      );
    }
    // One signed ahead of the node's clock is good for a window after its own time.
    const untilMs = nowMs + 2 * this.#options.windowMs;
    this.#remember(owner, key, untilMs);
    try {
      await this.#keeper?.journal.append([{ owner, key, until_ms: untilMs }]);
    } catch (error) {
      // A full disk must not keep its owner from making room. The process still remembers.
      this.#keeper?.log.warn(
        { err: error },
        'an operation could not be recorded and counts only until a restart',
      );
    }
  }

  #forgetPast(owner: string, nowMs: number): Map<string, number> | undefined {
    const own = this.#seen.get(owner);
    if (!own) return undefined;
    for (const [key, untilMs] of own) {
      if (untilMs > nowMs) break;
      own.delete(key);
    }
    if (own.size > 0) return own;
    this.#seen.delete(owner);
    return undefined;
  }

  #remember(owner: string, key: string, untilMs: number): void {
    const own = this.#seen.get(owner) ?? new Map<string, number>();
    own.set(key, untilMs);
    this.#seen.set(owner, own);
  }

  #live(): Line[] {
    for (const owner of [...this.#seen.keys()]) this.#forgetPast(owner, this.#nowMs);
    return [...this.#seen].flatMap(([owner, own]) =>
      [...own].map(([key, untilMs]) => ({ owner, key, until_ms: untilMs })),
    );
  }
}
