import { networkKeyOf } from '../net/client-address.ts';
import type { Client } from './client.ts';
import type { NetworkOf } from './fair-line.ts';
import { Holders } from './holders.ts';
import { type Held, type NoShare, type ShareLimits, Shares } from './shares.ts';

type Asking = Pick<Client, 'key' | 'isExempt'>;

/** What gives a place back, and ends what it was held for. */
type Yield = () => void;

/**
 * Places that clients hold for as long as they like. Where strangers have none left, a client that has none takes one of the client that
 * has most, if that has several: a few clients cannot keep out all others. Nor can the many clients that one customer of a network can
 * be: where none has several, it takes one of the network (networkKeyOf) that has most, if its own network has no more than that afterwards.
 * Our own keep theirs, and however many they have, they come as if they had none.
 */
export class YieldingShares {
  readonly #shares: Shares;
  /** What strangers hold. */
  readonly #clients = new Holders<Yield>();
  /** What of it those hold who are one of many clients of a network. */
  readonly #networks = new Holders<Yield>();

  readonly #yields: 'oldest' | 'newest';
  readonly #networkOf: NetworkOf;

  /** @param yields which of its places a client loses: the newest where it has waited for something with the others */
  constructor(
    limits: ShareLimits,
    yields: 'oldest' | 'newest' = 'oldest',
    networkOf: NetworkOf = networkKeyOf,
  ) {
    this.#shares = new Shares(limits);
    this.#yields = yields;
    this.#networkOf = networkOf;
  }

  heldBy(key: string): number {
    return this.#shares.heldBy(key);
  }

  /** @param end called where the place goes to another client: it is given back by then */
  take(client: Asking, end: () => void): Held | NoShare {
    const network = this.#networkOf(client.key);
    let place = this.#shares.take(client);
    if (place === 'all' && this.#makeRoom(client, network)) place = this.#shares.take(client);
    if (typeof place === 'string' || client.isExempt) return place;
    const { release } = place;
    const given: Held = {
      release: () => {
        this.#clients.delete(client.key, yields);
        if (network !== undefined) this.#networks.delete(network, yields);
        release();
      },
    };
    const yields = () => {
      given.release();
      end();
    };
    this.#clients.add(client.key, yields);
    if (network !== undefined) this.#networks.add(network, yields);
    return given;
  }

  /** @returns whether there was one to yield */
  #makeRoom({ key, isExempt }: Asking, network: string | undefined): boolean {
    if (!isExempt && this.#clients.countOf(key) > 0) return false;
    const near = isExempt || network === undefined ? 0 : this.#networks.countOf(network);
    const most = this.#clients.ofMost(2) ?? this.#networks.ofMost(near + 2);
    if (most === undefined) return false;
    const [oldest] = most;
    const yields = this.#yields === 'oldest' ? oldest! : [...most].at(-1)!;
    yields();
    return true;
  }
}
