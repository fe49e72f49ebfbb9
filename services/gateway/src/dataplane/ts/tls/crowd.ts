import { networkKeyOf } from '@skerry/kit';

/** One of those that wait for the same places. */
export interface Waiting {
  /** Of clientKey. */
  readonly clientKey: string;
}

function most<One>(waiting: Iterable<One>, keyOf: (one: One) => string | undefined): readonly One[] {
  const byKey = new Map<string, One[]>();
  let found: readonly One[] = [];
  for (const one of waiting) {
    const key = keyOf(one);
    if (key === undefined) continue;
    const own = byKey.get(key);
    if (own) own.push(one);
    else byKey.set(key, [one]);
    if (byKey.get(key)!.length > found.length) found = byKey.get(key)!;
  }
  return found;
}

/**
 * Which go where too many wait: the oldest of the client that has most, or where no client has `many`, of the network that has most. Where
 * none has, it is whoever has waited for longest. Of a client or network that has many, `atOnce` go at most, and none once it has fewer.
 * @param waiting the oldest first
 */
export function crowdingOf<One extends Waiting>(
  waiting: Iterable<One>,
  many: number,
  atOnce: number,
): readonly One[] {
  const all = [...waiting];
  for (const keyOf of [(one: One) => one.clientKey, (one: One) => networkKeyOf(one.clientKey)]) {
    const own = most(all, keyOf);
    if (own.length >= many) return own.slice(0, Math.min(atOnce, own.length - many + 1));
  }
  return all.slice(0, 1);
}
