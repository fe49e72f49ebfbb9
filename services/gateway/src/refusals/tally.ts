import type { Refusal } from '../dataplane/port.ts';

/** Networks of which a tally keeps an account of their own; with twice as many, those with the fewest refusals lose theirs. */
const MAX_NETWORKS = 1024;

/** How many, by the protocol and the reason: `tls_unknown_name`. Both are of closed sets. */
export type Reasons = ReadonlyMap<string, number>;

export interface Account {
  /** An IPv4 /24 or an IPv6 /48. */
  readonly network: string;
  readonly count: number;
  readonly reasons: Reasons;
}

interface Sum {
  count: number;
  readonly reasons: Map<string, number>;
}

const newSum = (): Sum => ({ count: 0, reasons: new Map() });

function addReason(sum: Sum, reason: string, count: number): void {
  sum.count += count;
  sum.reasons.set(reason, (sum.reasons.get(reason) ?? 0) + count);
}

function addSum(to: Sum, from: Sum): void {
  for (const [reason, count] of from.reasons) addReason(to, reason, count);
}

const byCount = ([, one]: readonly [string, Sum], [, other]: readonly [string, Sum]) =>
  other.count - one.count;

/** Refusals by network and reason, in bounded memory: the heaviest networks, and all others together. Totals are exact. */
export class Tally {
  readonly #networks = new Map<string, Sum>();
  readonly #others = newSum();

  get isEmpty(): boolean {
    return this.#networks.size === 0 && this.#others.count === 0;
  }

  add({ network, protocol, reason, count }: Refusal): void {
    let sum = network === null ? this.#others : this.#networks.get(network);
    if (sum === undefined) {
      sum = newSum();
      this.#networks.set(network!, sum);
    }
    addReason(sum, `${protocol}_${reason}`, count);
    if (this.#networks.size > 2 * MAX_NETWORKS) this.#shrink();
  }

  #shrink(): void {
    for (const [network, sum] of [...this.#networks].sort(byCount).slice(MAX_NETWORKS)) {
      this.#networks.delete(network);
      addSum(this.#others, sum);
    }
  }

  /** All that another one holds. */
  addAll(other: Tally): void {
    for (const [network, sum] of other.#networks) {
      const own = this.#networks.get(network) ?? newSum();
      this.#networks.set(network, own);
      addSum(own, sum);
    }
    addSum(this.#others, other.#others);
  }

  /** The heaviest, the first of them first, and what is left of all others. */
  heaviest(most: number): { readonly accounts: Account[]; readonly others: Omit<Account, 'network'> } {
    const sorted = [...this.#networks].sort(byCount);
    const others = newSum();
    addSum(others, this.#others);
    for (const [, sum] of sorted.slice(most)) addSum(others, sum);
    return { accounts: sorted.slice(0, most).map(([network, sum]) => ({ network, ...sum })), others };
  }
}
