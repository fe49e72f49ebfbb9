import { AppError } from '@skerry/protocol';

interface Waiting {
  readonly take: () => void;
  readonly timer: NodeJS.Timeout;
}

/** A bounded number at the same time, and a bounded number that waits a bounded time: whoever is beyond is told so at once. */
export class Slots {
  readonly #limits: { readonly running: number; readonly waiting: number; readonly waitMs: number };
  #running = 0;
  readonly #queue: Waiting[] = [];

  constructor(limits: { readonly running: number; readonly waiting: number; readonly waitMs: number }) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running;
  }

  /** A slot, given back when it is disposed of. Throws OVERLOADED. */
  async take(): Promise<Disposable> {
    const { running, waiting, waitMs } = this.#limits;
    if (this.#running < running) this.#running++;
    else {
      if (this.#queue.length >= waiting) throw overloaded();
      await new Promise<void>((resolve, reject) => {
        const one: Waiting = {
          take: resolve,
          timer: setTimeout(() => {
            this.#queue.splice(this.#queue.indexOf(one), 1);
            reject(overloaded());
          }, waitMs),
        };
        this.#queue.push(one);
      });
    }
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        const next = this.#queue.shift();
        if (!next) {
          this.#running--;
          return;
        }
        clearTimeout(next.timer);
        next.take();
      },
    };
  }
}

const overloaded = () => new AppError('OVERLOADED', 'too many requests to IPFS are under way; try again');
