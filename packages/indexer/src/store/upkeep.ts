import { inTransaction } from '@skerry/database';
import type pg from 'pg';
import { readAgain } from '../watch.ts';
import type { RowKind } from './partitions.ts';

/** Rows that one span should stand for: few spans to add up, few rows to count where a filter cuts one. */
const SPAN_ROWS = 10_000;
const SMALL_ROWS = SPAN_ROWS / 2;
/** Spans whose rows are deleted in one transaction. */
const SPANS_PER_DELETE = 8;
/** Contracts whose scans are joined in one transaction. */
const CONTRACTS_PER_JOIN = 64;

/** Joins neighbouring small spans that nothing can undo any more. Gives how many there are fewer. */
export async function mergeSpans(pool: pg.Pool, networkId: number): Promise<number> {
  return inTransaction(pool, async (client) => {
    // A step of the tail waits: it may be taking spans back.
    const { rows } = await client.query<{ floor: number }>(
      'select floor_number as floor from indexer_networks where id = $1 for no key update',
      [networkId],
    );
    const merged = await client.query<{ n: number }>(
      `with ordered as (
         select *, sum((rows >= $3)::integer) over w as island, div(sum(rows) over w, $4) as part
         from indexer_spans where network_id = $1 and to_block <= $2
         window w as (partition by contract_id, event_id order by from_block)),
       members as (
         select *, min(from_block) over (partition by contract_id, event_id, island, part) as first from ordered where rows < $3),
       groups as (
         select contract_id, event_id, first, max(to_block) as to_block,
           min(from_timestamp) as from_timestamp, max(to_timestamp) as to_timestamp, sum(rows) as rows
         from members group by contract_id, event_id, island, part, first having count(*) > 1),
       -- One by one: the spans of transactions may overlap, and another one may lie within the group.
       gone as (
         delete from indexer_spans s using members m
         where s.network_id = $1 and s.contract_id = m.contract_id and s.event_id = m.event_id
           and s.from_block = m.from_block and m.from_block > m.first returning 1),
       kept as (
         update indexer_spans s set to_block = g.to_block, from_timestamp = g.from_timestamp, to_timestamp = g.to_timestamp, rows = g.rows
         from groups g where s.network_id = $1 and s.contract_id = g.contract_id and s.event_id = g.event_id
           and s.from_block = g.first)
       select count(*)::integer as n from gone`,
      [networkId, rows[0]!.floor, SMALL_ROWS, SPAN_ROWS],
    );
    return merged.rows[0]!.n;
  });
}

/**
 * Earlier blocks that are read, and final, become part of the scan that follows the tip after them: what there is to know of a
 * contract grows with its topics, and not with how often earlier blocks were asked for. Gives how many contracts were joined.
 */
export async function joinScans(pool: pg.Pool, networkId: number): Promise<number> {
  return inTransaction(pool, async (client) => {
    // As whoever makes or moves scans does; only those are touched that no backfill writes.
    const network = await client.query<{ floor: number }>(
      'select floor_number as floor from indexer_networks where id = $1 for no key update',
      [networkId],
    );
    const { floor } = network.rows[0]!;
    const { rows } = await client.query<{ id: number; kind: RowKind }>(
      `select distinct contract_id as id, kind from indexer_scans live join indexer_scans earlier using (contract_id, kind)
       where live.network_id = $1 and live.live and earlier.to_block = live.from_block - 1 and earlier.to_block <= $2
         and earlier.next_block > earlier.to_block and earlier.topics && live.topics limit $3`,
      [networkId, floor, CONTRACTS_PER_JOIN],
    );
    for (const { id, kind } of rows) await joinScansOf(client, { networkId, id, kind, floor });
    return rows.length;
  });
}

interface ScanRow {
  readonly topics: readonly string[];
  readonly from: number;
  /** Null for one that follows the tip. */
  readonly to: number | null;
  readonly owner: string | null;
  /** Whether the owner had some when they asked. */
  readonly standing: boolean;
}

async function joinScansOf(
  client: pg.PoolClient,
  { networkId, id, kind, floor }: { networkId: number; id: number; kind: RowKind; floor: number },
): Promise<void> {
  const { rows } = await client.query<ScanRow>(
    `delete from indexer_scans where contract_id = $1 and kind = $2 and (live or next_block > to_block and to_block <= $3)
     returning topics, from_block as from, to_block as to, owner, standing`,
    [id, kind, floor],
  );
  const begins = new Map<string, number>();
  for (const { topics, from, to } of rows)
    if (to === null) for (const topic of topics) begins.set(topic, from);
  const apart: ScanRow[] = [];
  for (const { topics, from, to, ...whose } of rows.toSorted((a, b) => (b.to ?? 0) - (a.to ?? 0))) {
    if (to === null) continue;
    const adjoining = new Set(topics.filter((topic) => begins.get(topic) === to + 1));
    for (const topic of adjoining) begins.set(topic, from);
    if (adjoining.size < topics.length)
      apart.push({ topics: topics.filter((topic) => !adjoining.has(topic)), from, to, ...whose });
  }
  const live = Map.groupBy(begins.keys(), (topic) => begins.get(topic)!);
  for (const { topics, from, to, owner, standing } of [
    ...apart,
    ...[...live].map(([from, topics]) => ({ topics, from, to: null, owner: null, standing: false })),
  ])
    await client.query(
      `insert into indexer_scans (network_id, contract_id, kind, topics, from_block, next_block, to_block, live, owner, standing)
       values ($1, $2, $3, $4, $5, coalesce($6::bigint + 1, $5), $6, $6 is null, $7, $8)`,
      [networkId, id, kind, topics, from, to, owner, standing],
    );
}

/**
 * Deletes some rows of a contract that nobody asked for any more, and last the contract, unless somebody asks for it again; false
 * where there are none.
 */
export async function deleteSomeRemoved(pool: pg.Pool, networkId: number): Promise<boolean> {
  const removed = await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ id: number }>(
      'select id from indexer_contracts where network_id = $1 and removed order by id limit 1 for update skip locked',
      [networkId],
    );
    const id = rows[0]?.id;
    return id === undefined ? undefined : { id, isGone: !(await deleteSomeRows(client, networkId, id)) };
  });
  if (removed?.isGone) await endRemoval(pool, networkId, removed.id);
  return removed !== undefined;
}

async function deleteSomeRows(client: pg.PoolClient, networkId: number, id: number): Promise<boolean> {
  const { rowCount } = await client.query(
    `with chosen as (
       delete from indexer_spans where (network_id, contract_id, event_id, from_block) in (
         select network_id, contract_id, event_id, from_block from indexer_spans
         where network_id = $1 and contract_id = $2 limit $3)
       returning event_id, from_block, to_block),
     gone as (
       delete from indexer_events_n${networkId} e using chosen
       where e.contract_id = $2 and e.event_id = chosen.event_id and e.block_number between chosen.from_block and chosen.to_block)
     select from chosen`,
    [networkId, id, SPANS_PER_DELETE],
  );
  return rowCount !== 0;
}

async function endRemoval(pool: pg.Pool, networkId: number, id: number): Promise<void> {
  await inTransaction(pool, async (client) => {
    // As whoever asks for a contract does: the network first.
    await client.query('select from indexer_networks where id = $1 for no key update', [networkId]);
    const { rows } = await client.query<{ asked: boolean }>(
      `select exists (select from indexer_watches where contract_id = c.id) as asked
       from indexer_contracts c where id = $1 and removed`,
      [id],
    );
    if (rows[0]?.asked) await readAgain(client, { networkId, id });
    else if (rows[0]) await client.query('delete from indexer_contracts where id = $1', [id]);
  });
}
