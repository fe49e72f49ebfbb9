import type { Accepted } from './accepted.ts';

/** A file that is judged or kept at this moment, by the message that it is for. */
export interface Entry {
  readonly accepted: Accepted;
  readonly ended: Promise<void>;
}

/** From the look whether a file may be kept to the verdict of its message. Ends when it is disposed of. */
export interface Turn extends Disposable {
  /** Of the same owner, what began before and has not ended. */
  earlier(): readonly Entry[];
}

/** Files that are being kept, those of each owner in the order in which they came. Within this process. */
export class UnderWay {
  readonly #ofOwner = new Map<string, Set<Entry>>();

  begin(accepted: Accepted): Turn {
    const { owner } = accepted;
    const all = this.#ofOwner.get(owner) ?? new Set();
    const before = [...all];
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const own = { accepted, ended };
    this.#ofOwner.set(owner, all.add(own));
    return {
      earlier: () => before.filter((one) => all.has(one)),
      [Symbol.dispose]: () => {
        all.delete(own);
        if (all.size === 0 && this.#ofOwner.get(owner) === all) this.#ofOwner.delete(owner);
        resolve();
      },
    };
  }
}
