/** Lets a bounded number of tasks begin in each turn of the event loop, in the order they came; all else runs between. */
export class Turns {
  readonly #perTurn: number;
  #waiting: (() => void)[] = [];
  #isDue = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      for (const begin of this.#waiting.splice(0, this.#perTurn)) begin();
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}
