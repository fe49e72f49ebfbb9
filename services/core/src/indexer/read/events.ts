import type pg from 'pg';
import type { Page } from '../../db/page.ts';
import { inTransaction } from '../store/transaction.ts';
import { type BlockRange, type Bounds, countRows, findBlockRange } from './bounds.ts';
import { type Cursor, checkCursor, writeCursor } from './cursor.ts';
import { type Coverage, type Freshness, findFreshness, listCoverage } from './status.ts';

export interface EventFilter extends Bounds {
  /** Lower case. */
  readonly contract?: string | undefined;
  /** A name, or a signature: `Transfer(address,address,uint256)`. */
  readonly eventName?: string | undefined;
  /** JSON objects of which the arguments contain one (see parseArguments). */
  readonly args?: readonly string[] | undefined;
}

export interface EventView {
  transaction_hash: string;
  block_number: number;
  log_index: number;
  contract: string;
  event_name: string;
  event_signature: string;
  args: Record<string, unknown>;
  timestamp: number;
}

export interface List<T> {
  readonly items: T[];
  readonly total: number;
  /** false: there are at least `total`. */
  readonly totalIsExact: boolean;
  /** Where the next page begins; null after the last one. */
  readonly cursor: string | null;
  readonly freshness: Freshness;
  readonly coverage: Coverage[];
}

/** One page is one moment of the chain: rows, total and head are of the same snapshot. */
export const SNAPSHOT = 'begin isolation level repeatable read read only';

/** Rows with given arguments that are looked at one by one; where there are more, the newest ones are found by walking down the chain. */
const MATCHES_MAX = 10_000;

interface Selection {
  readonly table: string;
  readonly contractId: number | undefined;
  readonly eventIds: readonly number[] | undefined;
  readonly range: BlockRange;
  readonly bounds: Bounds;
  readonly args: readonly string[] | undefined;
  readonly cursor: Cursor | undefined;
}

interface Row {
  readonly block_number: number;
  readonly log_index: number;
  readonly contract_id: number;
  readonly event_id: number;
  readonly timestamp: number;
  readonly transaction_hash: string;
  readonly args: Record<string, unknown>;
}

/** Newest first. Undefined where the network is not known. Throws CURSOR_REORGED. */
export async function listEvents(
  pool: pg.Pool,
  networkName: string,
  filter: EventFilter,
  page: Page,
  cursor?: Cursor,
): Promise<List<EventView> | undefined> {
  return inTransaction(
    pool,
    async (client) => {
      const freshness = await findFreshness(client, networkName);
      if (!freshness) return undefined;
      const { networkId } = freshness;
      if (cursor) await checkCursor(client, networkId, cursor);
      const coverage =
        filter.contract === undefined ? [] : await listCoverage(client, networkId, filter.contract);
      const nothing = { items: [], total: 0, totalIsExact: true, cursor: null, freshness, coverage };
      const contractId = filter.contract === undefined ? undefined : coverage[0]?.contractId;
      if (filter.contract !== undefined && contractId === undefined) return nothing;
      const eventIds = await findEventIds(client, networkId, filter.eventName, contractId);
      const range = await findBlockRange(client, networkId, filter);
      if (eventIds?.length === 0 || !range) return nothing;
      const table = `indexer_events_n${networkId}`;
      const selection = { table, contractId, eventIds, range, bounds: filter, args: filter.args, cursor };
      const { rows, total, totalIsExact } = filter.args
        ? await readMatches(client, networkId, selection, page)
        : {
            rows: await readOrdered(client, selection, page),
            total: await countRows(client, networkId, 'events', { contractId, eventIds }, range, filter),
            totalIsExact: true,
          };
      const items = await describeRows(client, rows);
      const last = rows.length === page.limit ? rows.at(-1) : undefined;
      const next = last && {
        block: last.block_number,
        index: last.log_index,
        top: cursor?.top ?? rows[0]!.block_number,
        undoSeq: cursor?.undoSeq ?? freshness.undoSeq,
      };
      return { items, total, totalIsExact, cursor: next ? writeCursor(next) : null, freshness, coverage };
    },
    SNAPSHOT,
  );
}

/** The event types to look for: by name or signature, or all that a contract has; undefined for all there are. */
async function findEventIds(
  client: pg.PoolClient,
  networkId: number,
  name: string | undefined,
  contractId: number | undefined,
): Promise<number[] | undefined> {
  if (name === undefined && contractId === undefined) return undefined;
  const { rows } = await client.query<{ id: number }>(
    contractId === undefined
      ? 'select id from indexer_event_types where name = $1 or signature = $1'
      : `select id from (select distinct event_id as id from indexer_spans where network_id = $2 and contract_id = $3) s
         where $1::text is null or id in (select id from indexer_event_types where name = $1 or signature = $1)`,
    contractId === undefined ? [name] : [name ?? null, networkId, contractId],
  );
  return rows.map(({ id }) => id);
}

const ROW = `block_number, log_index, contract_id, event_id, "timestamp",
  '0x' || encode(transaction_hash, 'hex') as transaction_hash, args`;
const ORDER = 'order by block_number desc, log_index desc';

/** Conditions of a selection but for contract and event, and their parameters. */
function conditionsOf({ range, bounds, args, cursor }: Selection, parameters: unknown[]): string {
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const conditions = [`block_number between ${add(range.from)} and ${add(range.to)}`];
  if (bounds.fromTimestamp !== undefined) conditions.push(`"timestamp" >= ${add(bounds.fromTimestamp)}`);
  if (bounds.toTimestamp !== undefined) conditions.push(`"timestamp" <= ${add(bounds.toTimestamp)}`);
  if (args) conditions.push(`(${args.map((one) => `args @> ${add(one)}::jsonb`).join(' or ')})`);
  if (cursor) {
    conditions.push(`(block_number, log_index) < (${add(cursor.block)}, ${add(cursor.index)})`);
    // The same in a form by which partitions are left out.
    conditions.push(`block_number <= ${add(cursor.block)}`);
  }
  return conditions.join(' and ');
}

/** Walks down an index in order, once for each event type, and takes the newest of all. */
async function readOrdered(client: pg.PoolClient, selection: Selection, page: Page): Promise<Row[]> {
  const { table, contractId, eventIds } = selection;
  const offset = selection.cursor ? 0 : page.offset;
  const parameters: unknown[] = [];
  const conditions = conditionsOf(selection, parameters);
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const tail = `${ORDER} limit ${add(page.limit)} offset ${add(offset)}`;
  if (!eventIds)
    return (await client.query<Row>(`select ${ROW} from ${table} where ${conditions} ${tail}`, parameters))
      .rows;
  const contract = contractId === undefined ? '' : `contract_id = ${add(contractId)} and`;
  const each = eventIds.map(
    (id) =>
      `(select * from ${table} where ${contract} event_id = ${id} and ${conditions} ${ORDER} limit ${page.limit + offset})`,
  );
  const { rows } = await client.query<Row>(
    `select ${ROW} from (${each.join(' union all ')}) newest ${tail}`,
    parameters,
  );
  return rows;
}

type Counted<R> = R & { readonly all: number; readonly total: number };

const isRow = (row: Row | { block_number: null }): row is Row => row.block_number !== null;

/** Rows by their arguments: all of them by the index of arguments where they are few, else as any other list. */
async function readMatches(
  client: pg.PoolClient,
  _networkId: number,
  selection: Selection,
  page: Page,
): Promise<{ rows: Row[]; total: number; totalIsExact: boolean }> {
  const { table, contractId, eventIds, args } = selection;
  const parameters: unknown[] = [];
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const matching = `(${args!.map((one) => `args @> ${add(one)}::jsonb`).join(' or ')})`;
  const found = `with found as materialized (select * from ${table} where ${matching}
    and block_number between ${add(selection.range.from)} and ${add(selection.range.to)} limit ${MATCHES_MAX + 1})`;
  const kind = [
    contractId === undefined ? '' : `contract_id = ${add(contractId)} and`,
    eventIds === undefined ? '' : `event_id = any(${add(eventIds)}) and`,
  ].join(' ');
  const inBounds = conditionsOf({ ...selection, args: undefined, cursor: undefined }, parameters);
  const onPage = conditionsOf({ ...selection, args: undefined }, parameters);
  // Without statistics of a value the planner may prefer to read everything.
  await client.query('set local enable_seqscan = off');
  // One row without a row of the table where the page is empty.
  const { rows } = await client.query<Counted<Row> | Counted<{ block_number: null }>>(
    `${found}, matched as (select * from found where ${kind} ${inBounds}),
     page as (select ${ROW} from matched where ${onPage} ${ORDER}
       limit ${add(page.limit)} offset ${add(selection.cursor ? 0 : page.offset)})
     select (select count(*) from found) as all, (select count(*) from matched) as total, page.*
     from (select) one left join page on true ${ORDER}`,
    parameters,
  );
  const { all, total } = rows[0]!;
  if (all > MATCHES_MAX)
    return { rows: await readOrdered(client, selection, page), total, totalIsExact: false };
  return { rows: rows.flatMap((row) => (isRow(row) ? row : [])), total, totalIsExact: true };
}

async function describeRows(client: pg.PoolClient, rows: readonly Row[]): Promise<EventView[]> {
  if (rows.length === 0) return [];
  const [contracts, types] = [
    await client.query<{ id: number; address: string }>(
      'select id, address from indexer_contracts where id = any($1)',
      [rows.map((row) => row.contract_id)],
    ),
    await client.query<{ id: number; name: string; signature: string }>(
      'select id, name, signature from indexer_event_types where id = any($1)',
      [rows.map((row) => row.event_id)],
    ),
  ];
  const addresses = new Map(contracts.rows.map(({ id, address }) => [id, address]));
  const events = new Map(types.rows.map((type) => [type.id, type]));
  return rows.map((row) => ({
    transaction_hash: row.transaction_hash,
    block_number: row.block_number,
    log_index: row.log_index,
    contract: addresses.get(row.contract_id) ?? '',
    event_name: events.get(row.event_id)?.name ?? '',
    event_signature: events.get(row.event_id)?.signature ?? '',
    args: row.args,
    timestamp: row.timestamp,
  }));
}
