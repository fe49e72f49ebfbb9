import { parseIpv6Prefix } from '../instance-address.ts';
import type { NodeRecord } from '../measurement/report.ts';

/** The value that most records have; of several as frequent, the least. Null where none has one. */
function mostFrequent(values: readonly (string | null)[]): string | null {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
  let best: string | null = null;
  for (const [value, count] of counts) {
    const most = best === null ? 0 : counts.get(best)!;
    if (best === null || count > most || (count === most && value < best)) best = value;
  }
  return best;
}

const ipv4Of = ({ ipv4 }: NodeRecord) => ipv4;

function poolOf({ ipv6Pool }: NodeRecord): string | null {
  if (ipv6Pool === null) return null;
  try {
    return parseIpv6Prefix(ipv6Pool);
  } catch {
    return null;
  }
}

/** One of a node's two places in the network, hours newest first. */
class Place {
  /** The newest that is known. */
  newest: string | null = null;
  #older: string | null = null;
  #proved: string | null = null;
  changes = 0;

  /** @param counts whether the hour is within the window of stability */
  add(value: string | null, counts: boolean): void {
    if (value === null) return;
    this.newest ??= value;
    if (!counts) return;
    if (this.#older !== null && this.#older !== value) this.changes++;
    this.#older = value;
  }

  /** A value that the node's key answered at a short while ago. */
  prove(value: string | null): void {
    this.#proved ??= value;
  }

  /** Whether the newest value is the one that was proved last. */
  get isProved(): boolean {
    return this.newest !== null && this.newest === this.#proved;
  }

  get isKnown(): boolean {
    return this.#older !== null;
  }
}

/** Where a compute node was: its IPv4 address and the network of its virtual machines. */
export class NetworkPlace {
  readonly ipv4 = new Place();
  readonly pool = new Place();
  #hasHistory = false;

  add(records: readonly NodeRecord[], counts: boolean): void {
    if (counts) this.#hasHistory = true;
    this.ipv4.add(mostFrequent(records.map(ipv4Of)), counts);
    this.pool.add(mostFrequent(records.map(poolOf)), counts);
  }

  /** Takes in what records of a short while ago proved. */
  prove(records: readonly NodeRecord[]): void {
    this.ipv4.prove(mostFrequent(records.filter(({ ipv4Proved }) => ipv4Proved).map(ipv4Of)));
    this.pool.prove(mostFrequent(records.filter(({ ipv6PoolProved }) => ipv6PoolProved).map(poolOf)));
  }

  /** Whether it has no address, or changed it too often. Without any history it is not to blame. */
  isPenalized(maxChanges: number): boolean {
    if (!this.#hasHistory) return false;
    const { ipv4, pool } = this;
    return !ipv4.isKnown || !pool.isKnown || ipv4.changes >= maxChanges || pool.changes >= maxChanges;
  }
}

export interface Claim {
  readonly nodeId: string;
  readonly ipv4: string | null;
  readonly pool: string | null;
  /** Which of them are proved. */
  readonly proved: Readonly<Record<'ipv4' | 'pool', boolean>>;
  /** Whether the node itself claimed its id. */
  readonly isVerified: boolean;
}

/** Those that something is true of; all where it is of none. */
function someOf(claims: readonly Claim[], isTrue: (claim: Claim) => boolean): readonly Claim[] {
  const some = claims.filter(isTrue);
  return some.length > 0 ? some : claims;
}

/**
 * The nodes that stand at an address which another node holds. Of those that share one, the node keeps it that proved it; of several,
 * and where none did, the one that claims its own id; of several, the one that registered first. Where none of these is registered
 * nobody is to blame: a place that is not proved is its node's own word, and a stranger could take a score away by naming another's.
 * @param registrations node id -> Unix seconds; an unknown node counts as the last
 */
export function findDuplicates(
  claims: readonly Claim[],
  registrations: ReadonlyMap<string, number>,
): Set<string> {
  const flagged = new Set<string>();
  for (const place of ['ipv4', 'pool'] as const) {
    const groups = Map.groupBy(
      claims.filter((claim) => claim[place] !== null),
      (claim) => claim[place],
    );
    for (const group of groups.values()) {
      if (group.length < 2) continue;
      const best = someOf(
        someOf(group, ({ proved }) => proved[place]),
        ({ isVerified }) => isVerified,
      );
      const keeper = best
        .map(({ nodeId }) => ({ nodeId, time: registrations.get(nodeId) ?? Number.POSITIVE_INFINITY }))
        .reduce((a, b) => (b.time < a.time || (b.time === a.time && b.nodeId < a.nodeId) ? b : a));
      if (keeper.time === Number.POSITIVE_INFINITY) continue;
      for (const { nodeId } of group) if (nodeId !== keeper.nodeId) flagged.add(nodeId);
    }
  }
  return flagged;
}
