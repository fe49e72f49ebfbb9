import type { Page } from '@skerry/database';
import type { Price, PriceTable, ResourceKind, ResourceNeeds } from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { spelledOwner } from '../../store/messages/spelling.ts';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';
import { PRICED, RATE } from './sql.ts';

type Db = Kysely<Schema>;

/** Something that costs, and the price that it keeps. */
export interface Cost {
  readonly itemHash: string;
  /** As its message spells it. */
  readonly owner: string;
  /** Unix seconds. */
  readonly created: number;
  readonly needs: ResourceNeeds;
  readonly price: Price;
  /** Billionths of a credit, so far. */
  readonly used: bigint;
}

interface CostRow {
  readonly item_hash: string;
  readonly owner: string;
  readonly kind: ResourceKind;
  readonly created: number;
  readonly units: number;
  readonly mib: number;
  readonly compute_unit: string;
  readonly storage_mib: string;
  readonly used: string;
}

const priceOf = (row: { readonly compute_unit: string; readonly storage_mib: string }): Price => ({
  computeUnit: BigInt(row.compute_unit),
  storageMib: BigInt(row.storage_mib),
});

const costOf = (row: CostRow): Cost => ({
  itemHash: row.item_hash,
  owner: row.owner,
  created: row.created,
  needs: { kind: row.kind, units: row.units, mib: row.mib },
  price: priceOf(row),
  used: BigInt(row.used),
});

const usedBy = (ref: RawBuilder<unknown>) => sql`
  (select -coalesce(sum(nano), 0) from credit_entries e where e.ref = ${ref} and e.counts)`;

/** @param chosen which of PRICED; the rest is read for those alone */
const costsOf = (chosen: RawBuilder<unknown>) => sql<CostRow>`
  select r.item_hash, r.kind, r.created, r.units, r.mib, r.compute_unit::text as compute_unit,
    coalesce((select ${spelledOwner('m')} from messages m where m.item_hash = r.item_hash), r.owner) as owner,
    r.storage_mib::text as storage_mib, ${usedBy(sql`r.item_hash`)}::text as used
  from (select r.*, p.compute_unit, p.storage_mib from ${PRICED} ${chosen}) r
  order by r.created desc, r.item_hash`;

/** What one message's resource costs; undefined where it has none that is in force. */
export async function findCost(db: Db, itemHash: string): Promise<Cost | undefined> {
  const { rows } = await costsOf(sql`where r.item_hash = ${itemHash}`).execute(db);
  return rows[0] && costOf(rows[0]);
}

/** Billionths of a credit that were used by one message's resource, also where it is there no more. */
export async function readUsed(db: Db, itemHash: string): Promise<bigint> {
  const { rows } = await sql<{ used: string }>`
    select ${usedBy(sql`${itemHash}::text`)}::text as used`.execute(db);
  return BigInt(rows[0]!.used);
}

export interface CostFilter {
  readonly owner?: string | undefined;
  readonly itemHash?: string | undefined;
}

const chosenBy = ({ owner, itemHash }: CostFilter) => sql`
  ${owner === undefined ? sql`true` : sql`r.owner = ${owner}`}
  and ${itemHash === undefined ? sql`true` : sql`r.item_hash = ${itemHash}`}`;

/** What resources cost, newest first. */
export async function listCosts(db: Db, filter: CostFilter, { limit, offset }: Page): Promise<Cost[]> {
  const { rows } = await withTimeLimit(db, (trx) =>
    costsOf(sql`
      where ${chosenBy(filter)} order by r.created desc, r.item_hash limit ${limit} offset ${offset}`).execute(
      trx,
    ),
  );
  return rows.map(costOf);
}

export interface CostTotals {
  readonly count: number;
  /** Billionths of a credit per second. */
  readonly rate: bigint;
  /** Billionths of a credit, so far. */
  readonly used: bigint;
}

/** What they cost together. Throws LIST_TOO_COSTLY. */
export async function sumCosts(db: Db, filter: CostFilter): Promise<CostTotals> {
  const { rows } = await withTimeLimit(db, (trx) =>
    sql<{ count: number; rate: string; used: string }>`
      select count(*) as count, coalesce(sum(${RATE}), 0)::text as rate,
        (select coalesce(-sum(e.nano), 0) from credit_entries e
          where e.counts and e.ref in (select r.item_hash from credit_resources r where ${chosenBy(filter)}))::text as used
      from ${PRICED} where ${chosenBy(filter)}`.execute(trx),
  );
  const { count, rate, used } = rows[0]!;
  return { count, rate: BigInt(rate), used: BigInt(used) };
}

interface PriceRow {
  readonly kind: ResourceKind;
  readonly compute_unit: string;
  readonly storage_mib: string;
  readonly from_time: number;
}

/** The prices that hold at a time, and since when. @param at Unix seconds */
export async function readPrices(db: Db, at: number): Promise<PriceRow[]> {
  const { rows } = await sql<PriceRow>`
    select kind, compute_unit::text as compute_unit, storage_mib::text as storage_mib, from_time
    from credit_price_steps where from_time <= ${at} and until_time > ${at} order by kind`.execute(db);
  return rows;
}

export async function readPriceTable(db: Db, at: number): Promise<PriceTable> {
  const rows = await readPrices(db, at);
  return Object.fromEntries(rows.map((row) => [row.kind, priceOf(row)])) as unknown as PriceTable;
}

/** How many times the prices changed. */
export async function countPriceChanges(db: Db): Promise<number> {
  const { rows } = await sql<{ changes: number }>`
    select count(distinct from_time) - 1 as changes from credit_prices`.execute(db);
  return Math.max(0, rows[0]!.changes);
}
