import type { Logger } from '@skerry/kit';

/** Something that is not in order (http/status.ts). */
interface Problem {
  readonly code: string;
  readonly message: string;
  /** Unix milliseconds. */
  readonly since_ms: number;
}

/** What is over sooner, as while everything starts, is no news. */
const LASTING_MS = 30_000;

/** Of one code there may be several: the prefixes that nodes share. */
const keyOf = ({ code, message }: Problem) => (code === 'PREFIX_SHARED' ? message : code);

/**
 * Tells the log what has begun not to be in order, and what is over: `/status` says only how it is now, and whoever asks in the morning why
 * something was not moved at night finds it here. The figures in a problem's words change all the time, so that each is told once.
 */
export class ProblemLog {
  readonly #log: Logger;
  readonly #told = new Map<string, Problem>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** @param problems that there are now @param nowMs Unix milliseconds */
  tell(problems: readonly Problem[], nowMs: number): void {
    const keys = new Set(problems.map(keyOf));
    for (const [key, { code, since_ms: sinceMs }] of this.#told) {
      if (keys.has(key)) continue;
      this.#told.delete(key);
      const seconds = Math.max(0, Math.round((nowMs - sinceMs) / 1000));
      this.#log.info({ code, seconds }, 'a problem is over');
    }
    for (const problem of problems) {
      const { code, message: why, since_ms: sinceMs } = problem;
      if (this.#told.has(keyOf(problem)) || nowMs - sinceMs < LASTING_MS) continue;
      this.#told.set(keyOf(problem), problem);
      this.#log.warn({ code, why, since: new Date(sinceMs).toISOString() }, 'something is not in order');
    }
  }
}
