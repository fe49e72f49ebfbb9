import { Holders } from '@skerry/kit';

/** One of those that wait for the same places. */
export interface Waiting {
  /** Of clientKey. */
  readonly clientKey: string;
  /** Of networkKeyOf. */
  readonly networkKey: string | undefined;
}

/** Those that wait, by client and by network: to find a crowd among them costs the same however many they are. */
export class Crowd<One extends Waiting> {
  readonly #clients = new Holders<One>();
  readonly #networks = new Holders<One>();

  enter(one: One): void {
    this.#clients.add(one.clientKey, one);
    if (one.networkKey !== undefined) this.#networks.add(one.networkKey, one);
  }

  /** It may have left before. */
  leave(one: One): void {
    this.#clients.delete(one.clientKey, one);
    if (one.networkKey !== undefined) this.#networks.delete(one.networkKey, one);
  }

  /**
   * Who goes where too many wait: the oldest of the client that has most, or where no client has `many`, of the network that has most.
   * Undefined where none has: it is whoever has waited for longest then.
   */
  oldestOfMost(many: number): One | undefined {
    const [oldest] = this.#clients.ofMost(many) ?? this.#networks.ofMost(many) ?? [];
    return oldest;
  }
}
