import { AppError } from '@skerry/protocol';
import { isYes } from '@skerry/protocol/api/core/common/flag';
import type { HistoryFilter } from '../../state/credits/history.ts';
import { parseListFilter } from '../../state/lists/parameters.ts';

/**
 * How a history is asked for (protocol's creditFilters); `kind` and `ref` are our own words for `direction` and `resource`,
 * `transfer` is the key of an entry (protocol's transferKey).
 */
interface HistoryQuery {
  readonly kind?: 'purchase' | 'expense' | undefined;
  readonly ref?: string | undefined;
  readonly transfer?: string | undefined;
  readonly tx_hash?: string | undefined;
  readonly token?: string | undefined;
  readonly chain?: string | undefined;
  readonly provider?: string | undefined;
  readonly origin?: string | undefined;
  readonly origin_ref?: string | undefined;
  readonly payment_method?: string | undefined;
  readonly exclude_payment_method?: string | undefined;
  readonly has_expiration?: boolean | string | undefined;
  readonly startDate?: number | undefined;
  readonly endDate?: number | undefined;
  readonly direction?: string | undefined;
  readonly resourceTypes?: string | undefined;
  readonly resource?: string | undefined;
}

/** The one value of several words for one thing; null where they contradict each other. */
function oneOf<T>(...values: readonly (T | undefined)[]): T | undefined | null {
  const given = new Set(values.filter((value) => value !== undefined));
  return given.size > 1 ? null : [...given][0];
}

const given = (fields: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).filter((one): one is [string, string] => one[1] !== undefined));

/** Undefined: nothing can fit. Throws INVALID_PARAMETERS. @param owner in the one spelling */
export function historyFilterOf(owner: string, query: HistoryQuery): HistoryFilter | undefined {
  const { startDate: from, endDate, direction, has_expiration, transfer: key } = query;
  const to = endDate || undefined;
  if (from !== undefined && to !== undefined && to < from)
    throw new AppError('INVALID_PARAMETERS', 'query.endDate is before query.startDate');
  const kinds = { incoming: 'purchase', outgoing: 'expense' } as const;
  const kind = oneOf(
    query.kind,
    direction === undefined ? undefined : kinds[direction as keyof typeof kinds],
  );
  const ref = oneOf(query.ref, query.origin_ref, query.resource);
  if (kind === null || ref === null || (has_expiration !== undefined && isYes(has_expiration)))
    return undefined;
  const { tx_hash, token, chain, provider, origin, payment_method, exclude_payment_method } = query;
  return {
    owner,
    ...{ kind, ref, key, from, to },
    resourceTypes: parseListFilter('resourceTypes', query.resourceTypes),
    terms: given({ token, chain }),
    line: given({ tx_hash, provider, origin, payment_method }),
    notLine: given({ payment_method: exclude_payment_method }),
  };
}
