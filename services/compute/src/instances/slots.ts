/** A fixed number of turns: who finds none free waits in line. */
export class Slots {
  #free: number;
  readonly #line: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  get isFull(): boolean {
    return this.#free === 0;
  }

  /** Resolves with the turn; calling it gives the turn back, once. Rejects when the signal ends first. */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#stand(signal);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const next = this.#line.shift();
      if (next) next();
      else this.#free++;
    };
  }

  #stand(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#line.push(resolve);
    const leave = () => {
      this.#line.splice(this.#line.indexOf(resolve), 1);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    return promise.finally(() => signal.removeEventListener('abort', leave));
  }
}
