/** Waiting instances that are told newer figures at once at most. */
const AT_ONCE_MAX = 32;
/** And one more after each such time: each telling is stored for good, and any announcement of a node may change what all are told. */
const EVERY_MS = 6_000;

/** How many waiting instances may be told why they wait in newer figures; the first words of each have no limit. */
export class Wordings {
  #left = AT_ONCE_MAX;
  #lastMs: number | undefined;

  /** @param uptimeMs milliseconds since whenever; never set */
  left(uptimeMs: number): number {
    this.#left = Math.min(AT_ONCE_MAX, this.#left + (uptimeMs - (this.#lastMs ?? uptimeMs)) / EVERY_MS);
    this.#lastMs = uptimeMs;
    return Math.floor(this.#left);
  }

  use(count: number): void {
    this.#left -= count;
  }
}
