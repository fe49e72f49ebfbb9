import type { Page } from '@skerry/database';
import type pg from 'pg';
import type { BlockRange } from './bounds.ts';
import type { Found } from './list.ts';
import { conditionOf, conditionsOf, findOrdered, ORDER, type Place, type Selection } from './selection.ts';

/** Rows with given arguments are counted one by one, newest first; with so many and a full page the count ends. */
const COUNTED_MAX = 500;
/** Rows with given arguments in one look; where there are more, the newest ones are found by walking down the chain. */
const MATCHES_MAX = 10_000;

/**
 * Stretches of blocks to look at one after another, newest first: one partition, then two, then four. What is frequent is
 * found in the first ones, what is rare costs few looks. Pure.
 *
 * @param partitions newest first
 */
export function decideLooks(partitions: readonly BlockRange[], { from, to }: BlockRange): BlockRange[] {
  const looks: BlockRange[] = [];
  for (let [at, count] = [0, 1]; at < partitions.length; at += count, count *= 2) {
    const [newest, oldest] = [partitions[at]!, partitions.slice(at, at + count).at(-1)!];
    looks.push({ from: Math.max(from, oldest.from), to: Math.min(to, newest.to) });
  }
  return looks;
}

async function listPartitions(
  client: pg.PoolClient,
  networkId: number,
  { from, to }: BlockRange,
): Promise<BlockRange[]> {
  const { rows } = await client.query<BlockRange>(
    `select from_block as from, to_block - 1 as to from indexer_partitions
     where network_id = $1 and kind = 'events' and to_block > $2 and from_block <= $3 order by from_block desc`,
    [networkId, from, to],
  );
  return rows;
}

/** Events by their arguments: by the index of arguments where they are few, else as any other list. */
export async function findMatches(
  client: pg.PoolClient,
  networkId: number,
  selection: Selection,
  page: Page,
): Promise<Found<Place>> {
  const { range, cursor } = selection;
  // Without statistics of a value the planner may prefer to read everything.
  await client.query('set local enable_seqscan = off');
  const looks = decideLooks(await listPartitions(client, networkId, range), range);
  const rows: Place[] = [];
  let [total, seen] = [0, 0];
  let totalIsExact = true;
  for (const look of looks) {
    const isCounted = total >= COUNTED_MAX;
    if (isCounted && rows.length >= page.limit) return { rows, total, totalIsExact: false };
    // Nothing of the page is there, and enough was counted.
    if (isCounted && cursor && look.from > cursor.block) {
      totalIsExact = false;
      continue;
    }
    const part = { limit: page.limit - rows.length, offset: cursor ? 0 : Math.max(0, page.offset - total) };
    const enough = part.limit === 0 ? COUNTED_MAX - total : undefined;
    const found = await readLook(client, { ...selection, range: look }, part, enough);
    seen += found.all;
    total += found.total;
    if (found.total === enough) return { rows, total, totalIsExact: false };
    if (seen > MATCHES_MAX) {
      const newest = await findOrdered(client, selection, page);
      // Those before the page are some, too.
      const shown = newest.length === 0 ? 0 : (cursor ? 0 : page.offset) + newest.length;
      return { rows: newest, total: Math.max(total, shown), totalIsExact: false };
    }
    rows.push(...found.rows);
  }
  return { rows, total, totalIsExact };
}

type Counted<R> = R & { readonly all: number; readonly total: number };

const isPlace = (row: Place | { block_number: null }): row is Place => row.block_number !== null;

/**
 * @param enough rows of the selection to look at; undefined for all, which a page needs
 * @returns `all` rows with the arguments that are in the blocks, `total` of them in the selection
 */
async function readLook(
  client: pg.PoolClient,
  selection: Selection,
  page: Page,
  enough: number | undefined,
): Promise<{ all: number; total: number; rows: Place[] }> {
  const { table, contractId, eventIds, args, range } = selection;
  const parameters: unknown[] = [];
  const add = (value: unknown) => `$${parameters.push(value)}`;
  const matching = conditionOf(args!, parameters);
  const inRange = `block_number between ${add(range.from)} and ${add(range.to)}`;
  const kind = [
    contractId === undefined ? '' : `contract_id = ${add(contractId)} and`,
    eventIds === undefined ? '' : `event_id = any(${add(eventIds)}) and`,
  ].join(' ');
  const inBounds = conditionsOf({ ...selection, args: undefined, cursor: undefined }, parameters);
  const onPage = conditionsOf({ ...selection, args: undefined }, parameters);
  const counted = add(enough ?? null);
  // One row without a row of the table where the page is empty. What was enough ends the reading of `found`, too.
  const { rows } = await client.query<Counted<Place> | Counted<{ block_number: null }>>(
    `with found as materialized (
       select block_number, log_index, contract_id, event_id, "timestamp" from ${table}
       where ${matching} and ${inRange} limit ${MATCHES_MAX + 1}),
     matched as (select block_number, log_index, "timestamp" from found where ${kind} ${inBounds}
       limit ${counted}::bigint),
     chosen as (select block_number, log_index from matched where ${onPage} ${ORDER}
       limit ${add(page.limit)} offset ${add(page.offset)})
     select (select count(*) from matched) as total, chosen.*,
       case when (select count(*) from matched) = ${counted}::bigint then 0 else (select count(*) from found) end as all
     from (select) one left join chosen on true ${ORDER}`,
    parameters,
  );
  const { all, total } = rows[0]!;
  return { all, total, rows: rows.flatMap((row) => (isPlace(row) ? row : [])) };
}
