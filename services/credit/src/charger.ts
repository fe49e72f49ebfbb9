import { CHARGE_PERIOD_SECONDS, periodOf, RESOURCE_KINDS, type ResourceKind } from '@skerry/protocol';
import type { Network } from './network.ts';
import type { PurchaseStore } from './purchase-store.ts';

/** Messages of one round and kind. */
const MESSAGES_MAX = 1_000;
/** Periods that are made up for after the service was away. */
const PERIODS_MAX = 48;

/** What the charger needs of the core node. */
export type ChargedNetwork = Pick<Network, 'readCharges' | 'postExpense'>;

/**
 * Charges what is there, in advance and once for each period: machines for the hour, files for the day. What is not
 * charged yet is the core node's to say: a charge that was sent and not acknowledged is either there, or made again, and
 * of two the ledger counts one. All that is kept is the last period, so that those which were missed are made up for.
 */
export class Charger {
  readonly #network: ChargedNetwork;
  readonly #store: Pick<PurchaseStore, 'writeProgress'>;
  readonly #now: () => number;
  /** Kind -> when it was looked at last, Unix seconds. */
  #charged: Readonly<Record<string, number>>;

  constructor(
    network: ChargedNetwork,
    store: Pick<PurchaseStore, 'writeProgress'>,
    charged: Readonly<Record<string, number>>,
    now: () => number,
  ) {
    this.#network = network;
    this.#store = store;
    this.#charged = charged;
    this.#now = now;
  }

  async runRound(): Promise<void> {
    const now = Math.floor(this.#now() / 1000);
    for (const kind of RESOURCE_KINDS) {
      const length = CHARGE_PERIOD_SECONDS[kind];
      const from = Math.max(this.#charged[kind] ?? now, now - PERIODS_MAX * length);
      for (let time = from; time < now; time += length) await this.#charge(kind, time);
      await this.#charge(kind, now);
    }
    const isNewPeriod = RESOURCE_KINDS.some(
      (kind) => periodOf(kind, now).start !== periodOf(kind, this.#charged[kind] ?? 0).start,
    );
    if (!isNewPeriod) return;
    this.#charged = Object.fromEntries(RESOURCE_KINDS.map((kind) => [kind, now]));
    await this.#store.writeProgress({ charged: this.#charged });
  }

  async #charge(kind: ResourceKind, time: number): Promise<void> {
    let posted: ReadonlySet<string> = new Set();
    for (let message = 0; message < MESSAGES_MAX; message++) {
      const charges = await this.#network.readCharges(kind, time);
      const refs = charges.credits.map(({ ref }) => ref);
      // What is still to be charged had no effect, or has not yet: the next round asks again.
      if (refs.length === 0 || refs.some((ref) => posted.has(ref))) return;
      await this.#network.postExpense(charges);
      posted = new Set(refs);
    }
  }
}
