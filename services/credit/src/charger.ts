import type { Logger } from '@skerry/kit';
import { CHARGE_PERIOD_SECONDS, periodOf, RESOURCE_KINDS, type ResourceKind } from '@skerry/protocol';
import type { Network } from './network.ts';
import type { PurchaseStore } from './purchase-store.ts';

/** Messages of one round and kind. */
const MESSAGES_MAX = 1_000;
/** Periods that are made up for after the service was away. */
const PERIODS_MAX = 48;

/** The moment in the first of them. Unix seconds. */
const oldestOf = (kind: ResourceKind, now: number) => now - PERIODS_MAX * CHARGE_PERIOD_SECONDS[kind];

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
  readonly #log: Logger;
  /** Kind -> when it was looked at last, Unix seconds. */
  #charged: Readonly<Record<string, number>>;

  constructor(
    network: ChargedNetwork,
    store: Pick<PurchaseStore, 'writeProgress'>,
    charged: Readonly<Record<string, number>>,
    now: () => number,
    log: Logger,
  ) {
    this.#network = network;
    this.#store = store;
    this.#charged = charged;
    this.#now = now;
    this.#log = log;
  }

  async runRound(): Promise<void> {
    const now = Math.floor(this.#now() / 1000);
    const charged: Record<string, number> = {};
    for (const kind of RESOURCE_KINDS) charged[kind] = await this.#chargeUpTo(kind, now);
    const isNewPeriod = RESOURCE_KINDS.some(
      (kind) => periodOf(kind, charged[kind]!).start !== periodOf(kind, this.#charged[kind] ?? 0).start,
    );
    if (!isNewPeriod) return;
    for (const kind of RESOURCE_KINDS) this.#tellLeftOut(kind, now);
    this.#charged = charged;
    await this.#store.writeProgress({ charged });
  }

  /** Gives how far it came: from there the next round goes on. */
  async #chargeUpTo(kind: ResourceKind, now: number): Promise<number> {
    const from = Math.max(this.#charged[kind] ?? now, oldestOf(kind, now));
    for (let time = from; time < now; time += CHARGE_PERIOD_SECONDS[kind])
      if (!(await this.#charge(kind, time))) return time;
    await this.#charge(kind, now);
    return now;
  }

  /** What is too long ago is never charged. */
  #tellLeftOut(kind: ResourceKind, now: number): void {
    const { end: from } = periodOf(kind, this.#charged[kind] ?? now);
    const { start: to } = periodOf(kind, oldestOf(kind, now));
    if (from >= to) return;
    this.#log.warn(
      { kind, from: new Date(from * 1000).toISOString(), to: new Date(to * 1000).toISOString() },
      `nothing is charged for this time: only the last ${PERIODS_MAX} periods before now are made up for`,
    );
  }

  /** Whether nothing of that period is left to be charged. */
  async #charge(kind: ResourceKind, time: number): Promise<boolean> {
    let posted: ReadonlySet<string> = new Set();
    for (let message = 0; message < MESSAGES_MAX; message++) {
      const charges = await this.#network.readCharges(kind, time);
      const refs = charges.credits.map(({ ref }) => ref);
      // What is still to be charged had no effect, or has not yet: the next round asks again.
      if (refs.length === 0) return true;
      if (refs.some((ref) => posted.has(ref))) return false;
      await this.#network.postExpense(charges);
      posted = new Set(refs);
    }
    return false;
  }
}
