/** Where many wait, this part of them goes at once: a crowd does not pay for a turn of the loop each. */
const AT_ONCE = 1 / 16;

/**
 * Work of this thread that may wait for what is shorter. Whoever awaits `turn` goes on in a turn of the event loop in which at most a
 * sixteenth of those that wait do, in the order in which they came; what has come over a connection meanwhile is seen to in between.
 */
export class LowPriority {
  readonly #waiting: (() => void)[] = [];

  /** Resolves once it is the caller's turn, in the next turn of the event loop at the earliest. */
  turn(): Promise<void> {
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
