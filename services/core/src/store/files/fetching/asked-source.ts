import { Misses } from './misses.ts';
import type { FileSource } from './source.ts';
import type { Survey } from './survey.ts';

/**
 * Why a file is asked for: a message waits for it, for the first time or again; or it is gone (lost.ts); or a message was rejected for it
 * (missed.ts); or, whichever it is, the source said that it has it (survey.ts).
 */
export type Want = 'new' | 'again' | 'lost' | 'missed' | 'held';

/**
 * Files that a source turns out not to have, in a minute: a node that does not know this one answers it a hundred requests, and sessions
 * need some of them. Each sort has its own, or names that nobody has would hold up those that somebody has.
 */
const MISSES_PER_MINUTE: Readonly<Record<Want, number>> = {
  new: 14,
  again: 8,
  lost: 4,
  missed: 4,
  held: 10,
};
/** One that wants to be left alone for longer is asked again after so long. */
const REST_MAX_MS = 300_000;
/** When it is looked again whether one of its places is free. */
const TAKEN_MS = 1_000;

/** What is asked of a source now. */
export interface Asking extends Disposable {
  /** It has the file. */
  noteHit(): void;
  /** What it had was another file. */
  noteWrong(): void;
  /** It wants to be left alone, and has not said whether it has the file. */
  noteRest(restMs: number): void;
}

export interface AskedSourceOptions {
  readonly source: FileSource;
  /** Undefined where it can be asked for one file at a time alone. */
  readonly survey?: Survey | undefined;
  /** Files that it is asked for at the same time. */
  readonly places: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** How much one source is asked for. */
export class AskedSource {
  readonly source: FileSource;
  readonly survey: Survey | undefined;
  readonly #options: AskedSourceOptions;
  readonly #misses: Readonly<Record<Want, Misses>>;
  #running = 0;
  #restUntilMs = 0;

  constructor(options: AskedSourceOptions) {
    this.#options = options;
    this.source = options.source;
    this.survey = options.survey;
    this.#misses = {
      new: new Misses(MISSES_PER_MINUTE.new),
      again: new Misses(MISSES_PER_MINUTE.again),
      lost: new Misses(MISSES_PER_MINUTE.lost),
      missed: new Misses(MISSES_PER_MINUTE.missed),
      held: new Misses(MISSES_PER_MINUTE.held),
    };
  }

  /** Files that it is asked for now. */
  get running(): number {
    return this.#running;
  }

  /** Milliseconds until it may be asked for something more; 0: now. */
  waitMs(want: Want): number {
    const nowMs = this.#options.now();
    const restMs = this.#restUntilMs - nowMs;
    // Longer than any rest: the clock has been set back since.
    if (restMs > 0 && restMs <= REST_MAX_MS) return restMs;
    return this.#running >= this.#options.places ? TAKEN_MS : this.#misses[want].waitMs(nowMs);
  }

  /** Undefined where it may not be asked now. Has ended when it is disposed of. */
  begin(want: Want): Asking | undefined {
    if (this.waitMs(want) > 0) return undefined;
    const misses = this.#misses[want];
    misses.take();
    this.#running++;
    return {
      noteHit: () => misses.giveBack(),
      noteWrong: () => misses.take(),
      noteRest: (restMs) => {
        misses.giveBack();
        const untilMs = this.#options.now() + Math.min(restMs, REST_MAX_MS);
        this.#restUntilMs = untilMs;
      },
      [Symbol.dispose]: () => {
        this.#running--;
      },
    };
  }
}
