import type { Client } from './client.ts';
import { type Ranked, RankedHeap } from './ranked-heap.ts';
import type { Held } from './shares.ts';

type Asking = Pick<Client, 'key' | 'isExempt'>;

export interface Waiter {
  readonly begin: (running: Held) => void;
  /** Of all that ever waited: the how many-th it was. */
  readonly nth: number;
}

/** The network of a client, by its key; undefined where it is a network of its own. */
export type NetworkOf = (clientKey: string) => string | undefined;

/** What clients have, by their keys. */
export interface Standing {
  readonly networkOf: NetworkOf;
  readonly heldBy: (key: string) => number;
  /** With all that are of its network. */
  readonly heldNear: (key: string) => number;
  /** When it was served last: the how many-th it was; 0 where that is not known. */
  readonly servedAt: (key: string) => number;
}

/** Those of one client that wait, in the order they came. */
interface Queue extends Ranked {
  readonly client: Asking;
  readonly waiters: Set<Waiter>;
}

/** The clients of one network that wait: all of them have as many others near them, so that a change of that moves one thing. */
interface Network extends Ranked {
  readonly key: string;
  readonly queues: RankedHeap<Queue>;
}

/**
 * Where our own wait, who come as if they had none: apart, since an address may be one of our own by itself, and not behind a proxy that
 * nobody trusts. No client has this key.
 */
const OWN = '';

/**
 * Who waits, in the order of turns: first whoever has the fewest running, of these whose network has the fewest, then who was not served
 * for longest, then the first to come. Whatever changes costs the logarithm of how many clients wait.
 */
export class FairLine {
  readonly #standing: Standing;
  /** Strangers and our own, by client. */
  readonly #strangers = new Map<string, Queue>();
  readonly #own = new Map<string, Queue>();
  readonly #networks = new Map<string, Network>();
  readonly #first = new RankedHeap<Network>();
  #count = 0;

  constructor(standing: Standing) {
    this.#standing = standing;
  }

  get count(): number {
    return this.#count;
  }

  join(client: Asking, waiter: Waiter): void {
    const queues = this.#queuesOf(client);
    const queue = queues.get(client.key) ?? { client, waiters: new Set(), rank: [], place: -1 };
    queues.set(client.key, queue);
    queue.waiters.add(waiter);
    this.#count++;
    if (queue.waiters.size === 1) this.#rank(queue);
  }

  /** Harmless where it is not in line. */
  leave(client: Asking, waiter: Waiter): void {
    const queues = this.#queuesOf(client);
    const queue = queues.get(client.key);
    if (!queue?.waiters.delete(waiter)) return;
    this.#count--;
    if (queue.waiters.size === 0) queues.delete(client.key);
    this.#rank(queue);
  }

  /** What a client has, or when it was served, has changed. */
  note(key: string): void {
    for (const queue of [this.#strangers.get(key), this.#own.get(key)]) if (queue) this.#rank(queue);
    const network = this.#networks.get(this.#networkOf({ key, isExempt: false }));
    if (network) this.#rankNetwork(network);
  }

  /**
   * Whose turn it is, if it may have one: where the first is a stranger that may not, our own may.
   * @param mayHave of strangers it may not depend on more than how many a client has, nor let one with more where not one with fewer
   */
  first(mayHave: (client: Asking) => boolean): { client: Asking; waiter: Waiter } | undefined {
    const own = this.#networks.get(OWN);
    for (const queue of [this.#first.first?.queues.first, own?.queues.first]) {
      if (!queue || !mayHave(queue.client)) continue;
      const [waiter] = queue.waiters;
      return { client: queue.client, waiter: waiter! };
    }
    return undefined;
  }

  #networkOf({ key, isExempt }: Asking): string {
    return isExempt ? OWN : (this.#standing.networkOf(key) ?? key);
  }

  #queuesOf({ isExempt }: Asking): Map<string, Queue> {
    return isExempt ? this.#own : this.#strangers;
  }

  #rank(queue: Queue): void {
    const { client, waiters } = queue;
    const key = this.#networkOf(client);
    const network = this.#networks.get(key) ?? { key, queues: new RankedHeap<Queue>(), rank: [], place: -1 };
    this.#networks.set(key, network);
    const [waiter] = waiters;
    if (waiter) {
      const held = client.isExempt ? 0 : this.#standing.heldBy(client.key);
      network.queues.put(queue, [held, this.#standing.servedAt(client.key), waiter.nth]);
    } else network.queues.remove(queue);
    this.#rankNetwork(network);
  }

  #rankNetwork(network: Network): void {
    const { first } = network.queues;
    if (first) {
      const [held, served, nth] = first.rank as [number, number, number];
      const near = network.key === OWN ? 0 : this.#standing.heldNear(first.client.key);
      this.#first.put(network, [held, near, served, nth]);
      return;
    }
    this.#first.remove(network);
    this.#networks.delete(network.key);
  }
}
