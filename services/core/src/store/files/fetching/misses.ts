const MINUTE_MS = 60_000;

/** How often in a minute others may be asked in vain: what they have counts for nothing. Twice as often in the first minute. */
export class Misses {
  readonly #perMinute: number;
  #left: number;
  #atMs = 0;

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
    this.#left = perMinute;
  }

  /** Milliseconds until the next may be asked; 0: now. */
  waitMs(nowMs: number): number {
    // A clock that was set back gives none, and takes none.
    const passedMs = Math.max(0, nowMs - this.#atMs);
    this.#left = Math.min(this.#perMinute, this.#left + (passedMs * this.#perMinute) / MINUTE_MS);
    this.#atMs = nowMs;
    return this.#left >= 1 ? 0 : Math.ceil(((1 - this.#left) * MINUTE_MS) / this.#perMinute);
  }

  /** Before asking: it may be in vain. */
  take(): void {
    this.#left--;
  }

  /** It was not. */
  giveBack(): void {
    this.#left = Math.min(this.#perMinute, this.#left + 1);
  }
}
