import type { Page } from '@skerry/database';
import type pg from 'pg';
import type { EventDefinition } from '../abi/types.ts';
import { tableOf } from '../store/partitions.ts';
import type { ArgumentValues } from './arguments.ts';
import { type Bounds, countRows } from './bounds.ts';
import { type Row, readRows } from './event-rows.ts';
import { type Found, type List, type Moment, type Reading, readList } from './list.ts';
import { findMatches } from './matches.ts';
import { findOrdered, type Place } from './selection.ts';

export interface EventFilter extends Bounds {
  /** Lower case. */
  readonly contract?: string | undefined;
  /** A name, or a signature: `Transfer(address,address,uint256)`. */
  readonly eventName?: string | undefined;
  /** Alternatives of which the arguments fit one (see parseArguments). */
  readonly args?: readonly ArgumentValues[] | undefined;
}

export interface EventView {
  transaction_hash: string;
  block_number: number;
  log_index: number;
  contract: string;
  event_name: string;
  event_signature: string;
  /** Names of the arguments in the order of the declaration. */
  event_parameters: string[];
  args: Record<string, unknown>;
  timestamp: number;
}

/** Newest first. Undefined where the network is not known. Throws CURSOR_REORGED, LIST_TOO_COSTLY, and what `hold` and `turns` throw. */
export function listEvents(
  pool: pg.Pool,
  networkName: string,
  filter: EventFilter,
  page: Page,
  reading: Reading = {},
): Promise<List<EventView> | undefined> {
  const find = async ({ client, networkId, coverage, range }: Moment): Promise<Found<Place> | undefined> => {
    const contractId = filter.contract === undefined ? undefined : coverage[0]?.contractId;
    if (filter.contract !== undefined && contractId === undefined) return undefined;
    const eventIds = await findEventIds(client, networkId, filter.eventName, contractId);
    if (eventIds?.length === 0) return undefined;
    const table = tableOf('events', networkId);
    const { args } = filter;
    const selection = { table, contractId, eventIds, range, bounds: filter, args, cursor: reading.cursor };
    if (args) return findMatches(client, networkId, selection, page);
    const rows = await findOrdered(client, selection, page);
    const total = await countRows(client, networkId, 'events', { contractId, eventIds }, range, filter);
    return { rows, total, totalIsExact: true };
  };
  const placeOf = (row: Place) => ({ block: row.block_number, index: row.log_index });
  const { contract: address, eventName } = filter;
  const request = { ...reading, networkName, bounds: filter, address, eventName, page };
  const describe = async ({ client, networkId, hold }: Moment, places: readonly Place[]) =>
    describeRows(client, await readRows(client, tableOf('events', networkId), places, hold));
  return readList(pool, request, { find, placeOf, describe });
}

/**
 * The event types to look for: by name or signature, or all that a contract has; undefined for all there are. Only those of which
 * there are rows: anybody declares as many of a name as they like, and none of them ends.
 */
async function findEventIds(
  client: pg.PoolClient,
  networkId: number,
  name: string | undefined,
  contractId: number | undefined,
): Promise<number[] | undefined> {
  if (name === undefined && contractId === undefined) return undefined;
  const { rows } = await client.query<{ id: number }>(
    `select id from (
       select distinct event_id as id from indexer_spans where network_id = $2 and ($3::integer is null or contract_id = $3)) s
     where $1::text is null or exists (
       select from indexer_event_types t where t.id = s.id and (t.name = $1 or t.signature = $1))`,
    [name ?? null, networkId, contractId ?? null],
  );
  return rows.map(({ id }) => id);
}

async function describeRows(client: pg.PoolClient, rows: readonly Row[]): Promise<EventView[]> {
  if (rows.length === 0) return [];
  const types = await client.query<{
    id: number;
    name: string;
    signature: string;
    definition: EventDefinition;
  }>('select id, name, signature, definition from indexer_event_types where id = any($1)', [
    rows.map((row) => row.event_id),
  ]);
  const events = new Map(types.rows.map((type) => [type.id, type]));
  return rows.map((row) => {
    const { name = '', signature = '', definition } = events.get(row.event_id) ?? {};
    return {
      transaction_hash: row.transaction_hash,
      block_number: row.block_number,
      log_index: row.log_index,
      contract: row.address ?? '',
      event_name: name,
      event_signature: signature,
      event_parameters: definition?.parameters.map((parameter) => parameter.name) ?? [],
      args: row.args,
      timestamp: row.timestamp,
    };
  });
}
