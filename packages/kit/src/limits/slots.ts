import { AppError } from '@skerry/protocol/forms';

export interface SlotsOptions {
  /** Who comes when so many wait is refused at once; without it the line has no end. */
  readonly waitingMax?: number | undefined;
  /** Whoever waited so long is refused; without it everybody waits for a turn. */
  readonly waitMs?: number | undefined;
  /** Of whoever is refused. */
  readonly refusal?: string | undefined;
}

/** Lets at most `count` tasks run at once; the others wait in the order they came. */
export class Slots {
  readonly #options: SlotsOptions;
  /** In the order they came. */
  readonly #line = new Set<() => void>();
  #free: number;

  constructor(count: number, options: SlotsOptions = {}) {
    this.#free = count;
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#free === 0;
  }

  /** How many wait for a slot. */
  get waiting(): number {
    return this.#line.size;
  }

  /**
   * A slot, given back when it is disposed of.
   * @throws AppError OVERLOADED where the line is full or did not move; the signal's reason when it ends first
   */
  async take(signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(signal);
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        const [next] = this.#line;
        if (!next) {
          this.#free++;
          return;
        }
        this.#line.delete(next);
        next();
      },
    };
  }

  /** Runs a task in a slot. Rejects as `take` does. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    using _slot = await this.take(signal);
    return await task();
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    const {
      waitingMax = Number.POSITIVE_INFINITY,
      waitMs,
      refusal = 'too many tasks are running',
    } = this.#options;
    const overloaded = () => new AppError('OVERLOADED', `${refusal}; try again`);
    if (this.#line.size >= waitingMax) throw overloaded();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (reason: unknown) => {
      this.#line.delete(resolve);
      reject(reason);
    };
    const abort = () => leave(signal?.reason);
    this.#line.add(resolve);
    signal?.addEventListener('abort', abort, { once: true });
    const timer = waitMs === undefined ? undefined : setTimeout(() => leave(overloaded()), waitMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }
}
