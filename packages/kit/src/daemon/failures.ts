import { AppError } from '@skerry/protocol/forms';
import type { Logger } from './log.ts';

/** The first rest after a failure: whatever fails is not tried more than about once a second. */
const REST_BASE_MS = 1_000;
const REST_MAX_MS = 60_000;
/** So many failures in a row are more than a hiccup. */
const LASTING = 3;

/** What a start takes, of a process and of those that start with it. */
const START_MS = 60_000;

/** Others have to do something first, as a core node that starts as well has to reach its peers: while this process starts, no fault. */
export class NotYetError extends AppError {}

export interface FailuresOptions {
  readonly log: Logger;
  /** A sentence for the log. */
  readonly what: string;
  /** Said with it. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
  readonly baseMs?: number | undefined;
  readonly maxMs?: number | undefined;
  readonly random?: (() => number) | undefined;
  /** Milliseconds that the process has run. */
  readonly uptime?: () => number;
}

/** Milliseconds before attempt `attempt` (from 1): doubling from `baseMs` up to `maxMs`, with up to a quarter of jitter. */
export function backoffMs(
  attempt: number,
  baseMs: number,
  maxMs: number,
  random: number = Math.random(),
): number {
  const whole = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(whole * (1 - random / 4));
}

/** What makes two failures the same although they name other numbers, or other drafts of the same file (`writeFileAtomically`). */
const kindOf = (error: unknown) =>
  (error instanceof Error ? `${error.name} ${error.message}` : String(error))
    .replace(/\.[0-9a-f]{12}\.draft\b/g, '')
    .replace(/[0-9]+/g, '#');

/** A disk without room is no fault of the work: it stays so until somebody makes room, and the way through the code says nothing of it. */
const isDiskFull = (error: unknown): error is AppError =>
  error instanceof AppError && error.code === 'STORAGE_FULL';

/**
 * Failures in a row of work that is tried again for ever: each rests longer than the one before, and a failure is
 * logged when it is a new one and, from the fourth on, at every doubling of its number: where a database is away, all work of a node
 * fails at once, and again within a second. Its end is logged where it lasted. That a disk is full is logged once, and its end always.
 */
export class Failures {
  readonly #options: FailuresOptions;
  #count = 0;
  #kind = '';
  #sayAt = 1;
  #wasDiskFull = false;

  constructor(options: FailuresOptions) {
    this.#options = options;
  }

  /** In a row. */
  get count(): number {
    return this.#count;
  }

  /** @returns milliseconds to rest before the next try */
  note(error: unknown): number {
    const { log, what, fields, baseMs = REST_BASE_MS, maxMs = REST_MAX_MS, random } = this.#options;
    const { uptime = () => performance.now() } = this.#options;
    this.#count++;
    const kind = kindOf(error);
    const isFull = isDiskFull(error);
    if (kind !== this.#kind || (!isFull && this.#count >= this.#sayAt)) {
      const why = isFull ? { code: error.code, why: error.message } : { err: error };
      const isStarting = error instanceof NotYetError && uptime() < START_MS;
      // The next one that is told after the start is a warning.
      if (isStarting) log.info({ why: error.message, ...fields }, 'waiting: what is needed is not there yet');
      else log.warn({ ...why, ...fields, failures: this.#count }, what);
      this.#wasDiskFull ||= isFull;
      this.#kind = kind;
      this.#sayAt = Math.max(this.#count * 2, LASTING + 1);
    }
    return backoffMs(this.#count, baseMs, Math.max(baseMs, maxMs), random?.());
  }

  /** It went well. Whoever reads of a failure that lasted reads of its end, too. */
  clear(): void {
    const { log, what, fields } = this.#options;
    if (this.#count >= LASTING || this.#wasDiskFull)
      log.info({ ...fields, failures: this.#count }, `recovered: ${what}`);
    this.#count = 0;
    this.#kind = '';
    this.#sayAt = 1;
    this.#wasDiskFull = false;
  }
}
