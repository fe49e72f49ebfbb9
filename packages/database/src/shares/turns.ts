import { isTooLong } from '../failure.ts';

/** The longest that a read without a turn may keep the database busy, in milliseconds: ten times what nearly all lists take. */
const CHEAP_MS = 250;
/** So much of a budget may be used before the database is told what is left of it: cheap reads need not tell it anything. */
const UNTOLD_PART = 1 / 10;

/** Turns of whoever asks: of reads that take long, few go on at once, and of those that show whether they are cheap. */
export interface Turns {
  /** Whether one is had without waiting. */
  isFree(): boolean;
  /** It is given back when it is disposed of. May throw. */
  take(): Promise<Disposable>;
  /** For what may be cheap, while no turn is free. It is given back when it is disposed of. May throw. */
  takeTry(): Promise<Disposable>;
}

/** How something is read. */
export interface Allowed {
  /** How long it may keep the database busy, in whole milliseconds. */
  readonly budgetMs: number;
  /** Whoever has none is to hold nothing that others want: it may yet have to wait. */
  readonly hasTurn: boolean;
}

/** What is asked next has no time left, or none without a turn. */
export class NoTimeLeft extends Error {}

/** Whether something was not read since it would take longer than it may. */
export const tookTooLong = (error: unknown): boolean => error instanceof NoTimeLeft || isTooLong(error);

/**
 * Reads what may take long: in a turn. Where none is free it is tried: what is cheap needs none, and what is not is read anew when it has
 * its turn.
 * Throws what `read` and `turns` throw.
 *
 * @param turns without them nobody waits
 * @param budgetMs of what has its turn; whole milliseconds
 */
export async function readInTurn<T>(
  turns: Turns | undefined,
  budgetMs: number,
  read: (allowed: Allowed) => Promise<T>,
): Promise<T> {
  if (turns && !turns.isFree()) {
    using _try = await turns.takeTry();
    try {
      return await read({ budgetMs: Math.min(CHEAP_MS, budgetMs), hasTurn: false });
    } catch (error) {
      if (!tookTooLong(error)) throw error;
    }
  }
  using _turn = await turns?.take();
  return await read({ budgetMs, hasTurn: true });
}

/**
 * Time that statements have together, in a transaction that begins with it as its `statement_timeout`: a read may have any number of them.
 * They take a tenth more at most.
 */
export class Budget {
  readonly #ms: number;
  readonly #now: () => number;
  readonly #endMs: number;
  #toldMs: number;

  /**
   * @param ms whole milliseconds
   * @param now milliseconds of a clock that never goes back
   */
  constructor(ms: number, now: () => number = () => performance.now()) {
    this.#ms = ms;
    this.#now = now;
    this.#endMs = now() + ms;
    this.#toldMs = ms;
  }

  /** Throws NoTimeLeft. */
  check(): void {
    if (this.#leftMs() <= 0) throw new NoTimeLeft();
  }

  /** The `statement_timeout` of what is asked next, in whole milliseconds; undefined where the one in force is about as long. */
  next(): number | undefined {
    const leftMs = Math.max(this.#leftMs(), 1);
    if (this.#toldMs - leftMs <= this.#ms * UNTOLD_PART) return undefined;
    this.#toldMs = leftMs;
    return leftMs;
  }

  #leftMs(): number {
    return Math.floor(this.#endMs - this.#now());
  }
}
