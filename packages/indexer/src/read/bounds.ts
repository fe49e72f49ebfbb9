import type pg from 'pg';

/** Stretches of blocks and time that a list is limited to. All ends included. */
export interface Bounds {
  readonly fromBlock?: number | undefined;
  readonly toBlock?: number | undefined;
  /** Unix seconds. */
  readonly fromTimestamp?: number | undefined;
  readonly toTimestamp?: number | undefined;
}

export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

const LAST_BLOCK = Number.MAX_SAFE_INTEGER;

/**
 * The blocks in which rows of the bounds can lie. Rows have no index by time: the spans, which know the times of their
 * blocks, say where to look. Undefined where nothing can be there.
 */
export async function findBlockRange(
  client: pg.PoolClient,
  networkId: number,
  { fromBlock = 0, toBlock = LAST_BLOCK, fromTimestamp, toTimestamp }: Bounds,
): Promise<BlockRange | undefined> {
  let range = { from: fromBlock, to: toBlock };
  if (fromTimestamp !== undefined || toTimestamp !== undefined) {
    const { rows } = await client.query<{ first: number | null; last: number | null }>(
      `select min(from_block) as first, max(to_block) as last from indexer_spans
       where network_id = $1 and to_timestamp >= $2 and from_timestamp <= $3`,
      [networkId, fromTimestamp ?? 0, toTimestamp ?? LAST_BLOCK],
    );
    const { first, last } = rows[0]!;
    if (first === null || last === null) return undefined;
    range = { from: Math.max(range.from, first), to: Math.min(range.to, last) };
  }
  return range.from <= range.to ? range : undefined;
}

export interface SpanFilter {
  readonly contractId?: number | undefined;
  readonly eventIds?: readonly number[] | undefined;
}

/**
 * How many rows there are: the sums of whole spans, and for spans that a bound cuts, the rows counted.
 *
 * Transactions, and logs that fit no declaration, are counted together whoever asked for them: passes at different times leave spans
 * that overlap. Where a bound divides one, those are one stretch, since whose rows lie in a part of it is not known.
 *
 * @param table of rows; `kind` says which spans are its own
 */
export async function countRows(
  client: pg.PoolClient,
  networkId: number,
  kind: 'events' | 'transactions',
  { contractId, eventIds }: SpanFilter,
  { from, to }: BlockRange,
  { fromTimestamp = 0, toTimestamp = LAST_BLOCK }: Bounds,
): Promise<number> {
  const table = `indexer_${kind}_n${networkId}`;
  const same = kind === 'events' ? 'e.contract_id = s.contract_id and e.event_id = s.event_id and' : '';
  const { rows } = await client.query<{ total: number }>(
    `with mine as not materialized (
       select *, from_block >= $2 and to_block <= $3 and from_timestamp >= $4 and to_timestamp <= $5 as whole
       from indexer_spans
       where network_id = $1 and (contract_id <> 0) = $6 and ($7::integer is null or contract_id = $7)
         and ($8::integer[] is null or event_id = any($8)) and to_block >= $2 and from_block <= $3
         and to_timestamp >= $4 and from_timestamp <= $5),
     divided as (select exists (select from mine where event_id = 0 and not whole) as is_so),
     shared as (
       select *, max(to_block) over (partition by contract_id order by from_block rows between unbounded preceding and 1 preceding) as reached
       from mine where event_id = 0 and (select is_so from divided)),
     stretched as (
       select *, count(*) filter (where reached is null or reached < from_block) over (partition by contract_id order by from_block) as stretch
       from shared),
     stretches as (
       select contract_id, min(from_block) as from_block, max(to_block) as to_block, sum(rows) as rows, bool_and(whole) as whole
       from stretched group by contract_id, stretch),
     cut as (
       select contract_id, event_id, from_block, to_block from mine where event_id <> 0 and not whole
       union all
       select contract_id, 0, from_block, to_block from stretches where not whole)
     select coalesce((select sum(rows) from mine where whole and (event_id <> 0 or not (select is_so from divided))), 0)::bigint
       + coalesce((select sum(rows) from stretches where whole), 0)::bigint + coalesce((
       select sum(n) from cut s cross join lateral (
         select count(*) as n from ${table} e where ${same}
           e.block_number between greatest(s.from_block, $2) and least(s.to_block, $3)
           and e."timestamp" between $4 and $5) c), 0)::bigint as total`,
    [
      networkId,
      from,
      to,
      fromTimestamp,
      toTimestamp,
      kind === 'events',
      contractId ?? null,
      eventIds ?? null,
    ],
  );
  return rows[0]!.total;
}
