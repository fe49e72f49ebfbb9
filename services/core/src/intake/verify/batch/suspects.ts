const SUSPECTED_MS = 60_000;
const SUSPECTS_MAX = 10_000;

/**
 * Sources that lately sent what made a batch fail. Each message of theirs is judged by itself for a while, so that whoever
 * sends bad signatures makes few others pay for them.
 */
export class Suspects {
  readonly #until = new Map<string, number>();

  /** @param nowMs of any clock that only goes on */
  has(from: string, nowMs: number): boolean {
    return (this.#until.get(from) ?? -Infinity) > nowMs;
  }

  add(from: string, nowMs: number): void {
    this.#until.delete(from);
    this.#until.set(from, nowMs + SUSPECTED_MS);
    if (this.#until.size > SUSPECTS_MAX) this.#until.delete(this.#until.keys().next().value!);
  }
}
