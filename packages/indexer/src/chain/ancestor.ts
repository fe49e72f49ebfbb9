import { RpcError } from '../rpc/failures.ts';
import type { Endpoint } from '../rpc/pool.ts';
import type { Header } from './shape.ts';
import { fetchHeaders } from './source.ts';

/** Blocks in one look. Most reorganisations are of a few blocks. */
const PROBES_MAX = 16;

type Block = Pick<Header, 'number' | 'hash'>;

/**
 * Places in `known` to ask for next. Everything up to `low` is shared, everything from `high` on is not: a block names
 * its parent by its hash, so that what is shared ends somewhere and does not begin again. Pure.
 */
export function chooseProbes(low: number, high: number, probesMax: number): number[] {
  const open = high - low - 1;
  if (open <= probesMax) return Array.from({ length: open }, (_, index) => low + 1 + index);
  return Array.from({ length: probesMax }, (_, index) =>
    Math.floor(low + ((index + 1) * (high - low)) / (probesMax + 1)),
  );
}

/**
 * The newest block of `known`, which follow each other, that the endpoint has under the same hash; undefined where it has
 * none of them. Few requests for any depth, since every one of them may fail. Throws RpcError.
 */
export async function findAncestor(endpoint: Endpoint, known: readonly Block[]): Promise<number | undefined> {
  let [low, high] = [-1, known.length];
  const probesMax = Math.max(1, Math.min(PROBES_MAX, endpoint.learned.batchCalls));
  for (let isFirst = true; high - low > 1; isFirst = false) {
    // The newest ones first.
    const places = chooseProbes(isFirst ? Math.max(low, high - 1 - probesMax) : low, high, probesMax);
    const seen = await fetchHeaders(
      endpoint,
      places.map((place) => known[place]!.number),
    );
    const shared = places.filter((place, index) => seen[index]!.hash === known[place]!.hash);
    const other = places.find((place, index) => seen[index]!.hash !== known[place]!.hash);
    if (other !== undefined && shared.some((place) => place > other))
      // The chain was reorganised between two answers, or they are of two nodes behind one address.
      throw new RpcError({ kind: 'stale' });
    low = Math.max(low, ...shared);
    high = other ?? high;
  }
  return known[low]?.number;
}
