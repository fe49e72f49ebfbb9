import type { Logger } from '@skerry/kit';
import type { MissedFiles } from '../missed.ts';
import { ASKED_NAMES_MAX, type FileSource } from './source.ts';

/** From one question of a source to the next: it answers others, too. */
const QUESTION_MS = 10_000;
/** A source that fails, or that does not say for how long, is left alone for so long; and never for longer than the other. */
const REST_MS = 60_000;
const REST_MAX_MS = 3_600_000;
/** A name that waits is asked of the same source again after so long. */
const AGAIN_MS = 300_000;
/** Where one has not brought so many yet of what it says to have, it is asked for no more. */
const HELD_MAX = 1_000;
/** Rounds through rejected messages between two questions, a thousand messages each. */
const ROUNDS_MAX = 10;

/** One that can be asked for many files at once. */
type SurveyedSource = FileSource & Required<Pick<FileSource, 'findHeld'>>;

export const isSurveyed = (source: FileSource): source is SurveyedSource => source.findHeld !== undefined;

export interface SurveyOptions {
  readonly source: SurveyedSource;
  /** What messages were rejected for; of this source alone, so that none waits for another. */
  readonly swept?: Pick<MissedFiles, 'names' | 'round' | 'skip' | 'wake'> | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Logger;
}

/**
 * What one source says to have of the files that wait to be asked for, a thousand in a question: names that nobody has, of which there may
 * be any number, hold up none that somebody has. It is believed only until it is asked for the file itself.
 */
export class Survey {
  readonly #options: SurveyOptions;
  readonly #held = new Set<string>();
  /** Names that waited, and when they were asked for, the oldest first. */
  readonly #asked = new Map<string, number>();
  #running: Promise<void> | undefined;
  #nextMs = 0;

  constructor(options: SurveyOptions) {
    this.#options = options;
  }

  /** Files that it says to have and that were not asked for since. */
  get held(): ReadonlySet<string> {
    return this.#held;
  }

  /** It was asked for the file, or another source brought it. */
  drop(name: string): void {
    this.#held.delete(name);
  }

  /** What it had not may be there now, and it may know the question. */
  wake(): void {
    this.#nextMs = 0;
    this.#asked.clear();
    this.#options.swept?.wake();
  }

  /** Begins a question where one may be asked. Does not wait for it. @param waiting of them the first that were not asked for lately */
  ask(waiting: readonly string[], signal: AbortSignal): void {
    const { source, log } = this.#options;
    if (this.#running || this.#held.size >= HELD_MAX || this.#isLater(this.#nextMs, REST_MAX_MS)) return;
    this.#running = this.#question(waiting, signal)
      .catch((error) => {
        this.#rest(REST_MS);
        if (!signal.aborted)
          log.debug({ err: error, source: source.name }, 'a source did not say what it has');
      })
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Resolves when no question is under way. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** @param mostMs longer than any wait: the clock has been set back since */
  #isLater(ms: number, mostMs: number): boolean {
    const waitMs = ms - this.#options.now();
    return waitMs > 0 && waitMs <= mostMs;
  }

  #rest(ms: number): void {
    this.#nextMs = this.#options.now() + Math.min(ms, REST_MAX_MS);
  }

  async #question(waiting: readonly string[], signal: AbortSignal): Promise<void> {
    const { source, swept } = this.#options;
    let rounds = 0;
    while (rounds < ROUNDS_MAX && (await swept?.round())) rounds++;
    const names = this.#choose(waiting.filter((name) => source.handles(name)));
    if (names.length === 0) {
      // There are more messages to look at, which may lack nothing either.
      if (rounds === ROUNDS_MAX) this.#rest(QUESTION_MS);
      return;
    }
    const answer = await source.findHeld(names, signal);
    if ('restMs' in answer) return this.#rest(answer.restMs);
    this.#rest(QUESTION_MS);
    const nowMs = this.#options.now();
    const waits = new Set(waiting);
    for (const name of names) {
      swept?.skip(name);
      // The oldest stay first.
      this.#asked.delete(name);
      if (waits.has(name)) this.#asked.set(name, nowMs);
    }
    for (const name of answer.held) this.#held.add(name);
  }

  /** What waits comes first, but leaves half of the question to what messages were rejected for. */
  #choose(waiting: readonly string[]): string[] {
    for (const [name, atMs] of this.#asked) {
      if (this.#isLater(atMs + AGAIN_MS, AGAIN_MS)) break;
      this.#asked.delete(name);
    }
    const behind = this.#options.swept?.names ?? [];
    const frontMax = Math.max(ASKED_NAMES_MAX - behind.length, ASKED_NAMES_MAX / 2);
    const front = waiting.filter((name) => !this.#asked.has(name)).slice(0, frontMax);
    return [...new Set([...front, ...behind])].slice(0, ASKED_NAMES_MAX);
  }
}
