import { CHARGE_PERIOD_SECONDS, RESOURCE_KINDS, type ResourceKind } from '@skerry/protocol';
import type { Network } from './network.ts';

/** Messages of one round and kind. */
const MESSAGES_MAX = 1_000;
/** Periods that are made up for after the service was away. */
const PERIODS_MAX = 48;

/**
 * Charges what is there, in advance and once for each period: machines for the hour, files for the day. What is not
 * charged yet is the core node's to say, so there is nothing to keep: a charge that was sent and not acknowledged is
 * either there, or made again, and of two the ledger counts one.
 */
export class Charger {
  readonly #network: Network;
  readonly #now: () => number;
  /** The last period that was looked at. */
  readonly #last = new Map<ResourceKind, number>();

  constructor(network: Network, now: () => number) {
    this.#network = network;
    this.#now = now;
  }

  async runRound(): Promise<void> {
    const now = Math.floor(this.#now() / 1000);
    for (const kind of RESOURCE_KINDS) {
      const length = CHARGE_PERIOD_SECONDS[kind];
      const from = Math.max(this.#last.get(kind) ?? now, now - PERIODS_MAX * length);
      for (let time = from; time < now; time += length) await this.#charge(kind, time);
      await this.#charge(kind, now);
      this.#last.set(kind, now);
    }
  }

  async #charge(kind: ResourceKind, time: number): Promise<void> {
    for (let message = 0; message < MESSAGES_MAX; message++) {
      const charges = await this.#network.readCharges(kind, time);
      if (charges.credits.length === 0) return;
      await this.#network.postExpense(charges);
    }
  }
}
