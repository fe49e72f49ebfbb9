/**
 * Since when each of several things is wrong, as far as this process saw: it knows nothing of the time before it looked.
 * It keeps as many names as are wrong; `keepOnly` drops those of what is gone.
 */
export class Since {
  readonly #now: () => number;
  readonly #wrong = new Map<string, number>();

  /** @param now Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Tells how a thing is. Gives since when it is wrong, Unix milliseconds; null where it is not.
   * @param sinceMs where that is known: it counts unless the thing was wrong before
   */
  note(name: string, isWrong: boolean, sinceMs: number = this.#now()): number | null {
    if (!isWrong) {
      this.#wrong.delete(name);
      return null;
    }
    const known = Math.min(this.#wrong.get(name) ?? sinceMs, sinceMs);
    this.#wrong.set(name, known);
    return known;
  }

  /** As it was last told. */
  of(name: string): number | null {
    return this.#wrong.get(name) ?? null;
  }

  keepOnly(has: (name: string) => boolean): void {
    for (const name of this.#wrong.keys()) if (!has(name)) this.#wrong.delete(name);
  }
}
