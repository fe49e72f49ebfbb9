import type { ItemHash } from '@skerry/protocol';

/** Who is busy with a blob: one at a time may keep it or remove it. Within this process. */
export class Claims {
  readonly #held = new Map<ItemHash, Promise<void>>();

  /** Waits for its turn. The claim ends when it is disposed of. */
  async take(hash: ItemHash): Promise<Disposable> {
    for (let held = this.#held.get(hash); held; held = this.#held.get(hash)) await held;
    return this.#hold(hash);
  }

  /** The claim, or undefined where somebody else has it. */
  tryTake(hash: ItemHash): Disposable | undefined {
    return this.#held.has(hash) ? undefined : this.#hold(hash);
  }

  #hold(hash: ItemHash): Disposable {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(hash, promise);
    return {
      [Symbol.dispose]: () => {
        this.#held.delete(hash);
        resolve();
      },
    };
  }
}
