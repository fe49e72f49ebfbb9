import type { Client } from './client.ts';
import { type Held, type NoShare, type ShareLimits, Shares } from './shares.ts';

type Asking = Pick<Client, 'key' | 'isExempt'>;

/** What gives a place back, and ends what it was held for. */
type Yield = () => void;

/**
 * Places that clients hold for as long as they like. Where strangers have none left, a client that has none takes one of the client that
 * has most, if that has several: a few clients cannot keep out all others. Our own keep theirs, and however many they have, they come as
 * if they had none.
 */
export class YieldingShares {
  readonly #shares: Shares;
  /** Of strangers, by client: what was held first comes first. */
  readonly #held = new Map<string, Set<Yield>>();
  /** The same clients, by how many they hold: whoever comes when all have one costs no look at each of them. */
  readonly #byCount: Set<string>[] = [new Set()];

  readonly #yields: 'oldest' | 'newest';

  /** @param yields which of its places a client loses: the newest where it has waited for something with the others */
  constructor(limits: ShareLimits, yields: 'oldest' | 'newest' = 'oldest') {
    this.#shares = new Shares(limits);
    this.#yields = yields;
  }

  heldBy(key: string): number {
    return this.#shares.heldBy(key);
  }

  /** @param end called where the place goes to another client: it is given back by then */
  take(client: Asking, end: () => void): Held | NoShare {
    let place = this.#shares.take(client);
    if (place === 'all' && this.#makeRoom(client)) place = this.#shares.take(client);
    if (typeof place === 'string' || client.isExempt) return place;
    const { release } = place;
    const given: Held = {
      release: () => {
        this.#forget(client.key, yields);
        release();
      },
    };
    const yields = () => {
      given.release();
      end();
    };
    this.#note(client.key, yields);
    return given;
  }

  #note(key: string, yields: Yield): void {
    const own = this.#held.get(key) ?? new Set();
    this.#held.set(key, own.add(yields));
    this.#count(key, own.size - 1, own.size);
  }

  #forget(key: string, yields: Yield): void {
    const own = this.#held.get(key);
    if (!own?.delete(yields)) return;
    if (own.size === 0) this.#held.delete(key);
    this.#count(key, own.size + 1, own.size);
  }

  #count(key: string, before: number, after: number): void {
    this.#byCount[before]!.delete(key);
    if (after > 0) {
      this.#byCount[after] ??= new Set();
      this.#byCount[after].add(key);
    }
    while (this.#byCount.length > 1 && this.#byCount.at(-1)!.size === 0) this.#byCount.pop();
  }

  /** @returns whether there was one to yield */
  #makeRoom({ key, isExempt }: Asking): boolean {
    const most = this.#byCount.length - 1;
    if (most < 2 || (!isExempt && this.#held.has(key))) return false;
    const [first] = this.#byCount[most]!;
    const own = this.#held.get(first!)!;
    const [oldest] = own;
    const yields = this.#yields === 'oldest' ? oldest! : [...own].at(-1)!;
    yields();
    return true;
  }
}
