/** A call that runs, or one that waits where it holds nothing. */
export interface Share {
  /** Who called (packages/kit/src/net/client-address.ts). */
  readonly client: string;
  /** The program. */
  readonly key: string;
}

export interface Held extends Share {
  readonly memoryMib: number;
  readonly sinceMs: number;
}

export interface FairRules {
  /** What all calls may have together. */
  readonly memoryMib: number;
  readonly sandboxesPerProgram: number;
  /**
   * So long may a call run that is more than its caller's share, while others wait: of a caller who holds up to a quarter of the
   * memory. One with more has as much memory times time.
   */
  readonly contendedMs: number;
}

const FULL_TIME_SHARE = 1 / 4;

const sumOf = (held: readonly Held[], client: string) =>
  held.reduce((sum, one) => sum + (one.client === client ? one.memoryMib : 0), 0);
const countOf = (list: readonly Share[], client: string) =>
  list.filter((one) => one.client === client).length;
const clientsOf = (list: readonly Share[]) => new Set(list.map(({ client }) => client)).size;

/**
 * Those who hold least first; among these, those who will have had least of late; then who came first. Pure.
 * @param dueOf what the caller had of late and what this call may take of it
 */
export function orderWaiters<T extends Share>(
  waiters: readonly T[],
  held: readonly Held[],
  dueOf: (waiter: T) => number = () => 0,
): T[] {
  const ranks = new Map(waiters.map((one) => [one, [sumOf(held, one.client), dueOf(one)] as const]));
  return waiters.toSorted((one, other) => {
    const [a, b] = [ranks.get(one)!, ranks.get(other)!];
    return a[0] - b[0] || a[1] - b[1];
  });
}

/** What a client had counts half after this. */
const HALF_LIFE_MS = 60_000;
/** Clients whose use is remembered; beyond it the one that was silent longest is forgotten. */
const CLIENTS_MAX = 10_000;

/** What clients had of late: memory times time. Who asks seldom and little is served before who keeps the node busy. */
export class RecentUse {
  readonly #uses = new Map<string, { readonly amount: number; readonly atMs: number }>();

  /** MiB times milliseconds, older ones counted less. */
  of(client: string, nowMs: number): number {
    const use = this.#uses.get(client);
    return use === undefined ? 0 : use.amount * 0.5 ** ((nowMs - use.atMs) / HALF_LIFE_MS);
  }

  note({ client, memoryMib, sinceMs }: Held, nowMs: number): void {
    const amount = this.of(client, nowMs) + memoryMib * Math.max(0, nowMs - sinceMs);
    this.#uses.delete(client);
    this.#uses.set(client, { amount, atMs: nowMs });
    if (this.#uses.size > CLIENTS_MAX) this.#uses.delete(this.#uses.keys().next().value!);
  }
}

/**
 * The call that ends so that others get their turn; undefined while everybody who holds something holds a share of it. A share
 * is the same part for each who runs or waits: of the memory, and of the sandboxes of the program that is waited for. Pure.
 */
export function chooseToEnd<H extends Held>(
  held: readonly H[],
  waiters: readonly Share[],
  rules: FairRules,
  nowMs: number,
): H | undefined {
  const share = rules.memoryMib / clientsOf([...held, ...waiters]);
  const isOver = (one: Held, waiter: Share) => {
    const had = sumOf(held, one.client);
    const mayMs = rules.contendedMs * Math.min(1, (rules.memoryMib * FULL_TIME_SHARE) / had);
    if (one.client === waiter.client || nowMs - one.sinceMs < mayMs) return false;
    if (had > share) return true;
    const same = held.filter(({ key }) => key === waiter.key);
    const clients = clientsOf([...same, waiter]);
    return one.key === waiter.key && countOf(same, one.client) > rules.sandboxesPerProgram / clients;
  };
  const over = held.filter((one) => waiters.some((waiter) => isOver(one, waiter)));
  const [most] = over.toSorted(
    (one, other) => sumOf(held, other.client) - sumOf(held, one.client) || one.sinceMs - other.sinceMs,
  );
  return most;
}

/** Where no more may wait: whose newest waiter goes for a newcomer; undefined where the newcomer has to. Pure. */
export function chooseToRefuse<T extends Share>(waiters: readonly T[], client: string): T | undefined {
  const counts = new Map<string, number>();
  for (const one of waiters) counts.set(one.client, (counts.get(one.client) ?? 0) + 1);
  const [[greedy, most] = ['', 0]] = [...counts].toSorted(([, one], [, other]) => other - one);
  return most > (counts.get(client) ?? 0) + 1
    ? waiters.findLast((waiter) => waiter.client === greedy)
    : undefined;
}
