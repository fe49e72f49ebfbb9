/** Where many wait, this part of them goes at once: a crowd does not pay for a turn of the loop each. */
const AT_ONCE = 1 / 16;
/** For so long after something shorter came more of it is expected. */
const EXPECTED_MS = 1_000;

/**
 * Work of this thread that lets what is shorter go first, while there is such. Whoever awaits `turn` goes on in a turn of the event loop in
 * which at most a sixteenth of those that wait do, in the order in which they came; what has come over a connection meanwhile is seen to in
 * between.
 */
export class LowPriority {
  readonly #now: () => number;
  readonly #waiting: (() => void)[] = [];
  #expectedUntilMs = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Something shorter came. */
  note(): void {
    this.#expectedUntilMs = this.#now() + EXPECTED_MS;
  }

  /** Resolves once it is the caller's turn: at once where nothing shorter is expected, else in the next turn of the event loop at the earliest. */
  turn(): Promise<void> {
    if (this.#waiting.length === 0 && this.#now() >= this.#expectedUntilMs) return Promise.resolve();
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(this.#next);
    });
  }

  readonly #next = (): void => {
    const going = this.#waiting.splice(0, Math.ceil(this.#waiting.length * AT_ONCE));
    if (this.#waiting.length > 0) setImmediate(this.#next);
    for (const go of going) go();
  };
}
