import { backoffMs } from './failures.ts';

const REST_BASE_MS = 1_000;
const REST_MAX_MS = 300_000;
/** Beyond it the one that failed longest ago is forgotten. */
const KNOWN_MAX = 1_000;

export interface RestsOptions {
  readonly now?: (() => number) | undefined;
  readonly random?: (() => number) | undefined;
  readonly knownMax?: number | undefined;
  /** The longest rest. */
  readonly maxMs?: number | undefined;
}

interface Rest {
  readonly failures: number;
  readonly untilMs: number;
}

/**
 * Which of many things are left alone for a while: those that failed in a way that could not be written down where it
 * belongs. In memory, so that what cannot be postponed in a table is not tried without end.
 */
export class Rests {
  readonly #known = new Map<string, Rest>();
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #knownMax: number;
  readonly #maxMs: number;

  constructor({
    now = () => performance.now(),
    random = Math.random,
    knownMax = KNOWN_MAX,
    maxMs = REST_MAX_MS,
  }: RestsOptions = {}) {
    this.#now = now;
    this.#random = random;
    this.#knownMax = knownMax;
    this.#maxMs = maxMs;
  }

  /** It failed once more. */
  note(key: string): void {
    const failures = (this.#known.get(key)?.failures ?? 0) + 1;
    this.#known.delete(key);
    const untilMs = this.#now() + backoffMs(failures, REST_BASE_MS, this.#maxMs, this.#random());
    this.#known.set(key, { failures, untilMs });
    if (this.#known.size > this.#knownMax) this.#known.delete(this.#known.keys().next().value!);
  }

  /** It went well, or its failure is written down. */
  end(key: string): void {
    this.#known.delete(key);
  }

  /** Those that rest now. */
  list(): string[] {
    const nowMs = this.#now();
    return [...this.#known].flatMap(([key, { untilMs }]) => (untilMs > nowMs ? [key] : []));
  }
}
