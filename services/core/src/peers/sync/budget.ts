import type { Client } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

/**
 * What answers about ranges may cost, in ranges and keys: those of the question and of its answer, some 6 µs each.
 * A client may owe as much as it asks in a session that has much to compare; what it owes is forgotten a second at a time.
 */
export const RANGES_BUDGET: BudgetLimits = {
  perClient: { owedMax: 240_000, perSecond: 4_000 },
  // A quarter of the thread that answers. The part below is more than one question costs.
  all: { owedMax: 80_000, perSecond: 40_000 },
};
/** Of what all may owe, the part that is left to those who owe little themselves. */
const LIGHT_PART = 0.25;
/** A client owes little up to this part of its share. */
const LIGHT_OWED_PART = 0.1;
/** Clients that are remembered; beyond it the one that was silent longest is forgotten. */
const CLIENTS_MAX = 100_000;

interface Limit {
  readonly owedMax: number;
  /** What is forgotten of a debt in a second. */
  readonly perSecond: number;
}

export interface BudgetLimits {
  readonly perClient: Limit;
  readonly all: Limit;
}

interface Debt {
  readonly owed: number;
  readonly sinceMs: number;
}

const NO_DEBT: Debt = { owed: 0, sinceMs: 0 };

const owedAt = ({ owed, sinceMs }: Debt, { perSecond }: Limit, nowMs: number) =>
  Math.max(0, owed - ((nowMs - sinceMs) / 1000) * perSecond);

/**
 * Bounds what questions of very different cost take of one thread (leaky buckets): a question is answered while its client
 * and all clients together owe less than they may, and what it cost is owed afterwards. Exempt clients owe nothing.
 */
export class Budget {
  readonly #limits: BudgetLimits;
  readonly #now: () => number;
  readonly #clients = new Map<string, Debt>();
  #all: Debt = NO_DEBT;

  /** @param now milliseconds of a clock that never goes back */
  constructor(limits: BudgetLimits, now = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Throws RATE_LIMITED, OVERLOADED. */
  check({ key, isExempt }: Pick<Client, 'key' | 'isExempt'>): void {
    if (isExempt) return;
    const { perClient, all } = this.#limits;
    const own = owedAt(this.#clients.get(key) ?? NO_DEBT, perClient, this.#now());
    const details = (over: number, { perSecond }: Limit) => ({
      details: { retry_after: Math.max(1, Math.ceil(over / perSecond)) },
    });
    if (own >= perClient.owedMax)
      throw new AppError(
        'RATE_LIMITED',
        `a client can compare ${perClient.perSecond} ranges and keys per second; try again shortly`,
        details(own - perClient.owedMax, perClient),
      );
    const isLight = own <= perClient.owedMax * LIGHT_OWED_PART;
    const allMax = isLight ? all.owedMax : all.owedMax * (1 - LIGHT_PART);
    const owed = owedAt(this.#all, all, this.#now());
    if (owed >= allMax)
      throw new AppError(
        'OVERLOADED',
        'the node is at its limit of compared ranges; try again shortly',
        details(owed - allMax, all),
      );
  }

  /** Notes what an answer cost. */
  charge({ key, isExempt }: Pick<Client, 'key' | 'isExempt'>, cost: number): void {
    if (isExempt) return;
    const { perClient, all } = this.#limits;
    const sinceMs = this.#now();
    const own = this.#clients.get(key) ?? NO_DEBT;
    this.#clients.delete(key);
    this.#clients.set(key, { owed: owedAt(own, perClient, sinceMs) + cost, sinceMs });
    if (this.#clients.size > CLIENTS_MAX) this.#clients.delete(this.#clients.keys().next().value!);
    this.#all = { owed: owedAt(this.#all, all, sinceMs) + cost, sinceMs };
  }
}
