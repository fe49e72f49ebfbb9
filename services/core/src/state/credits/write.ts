import {
  type CreditNotice,
  type LedgerEntry,
  listPriceSteps,
  PRICING_KEY,
  RESOURCE_KINDS,
  type ResourceNeeds,
} from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { mibOf } from './sql.ts';

type Db = Kysely<Schema>;

/** Something that costs, as its message tells of it. */
export interface ResourceRow {
  readonly itemHash: string;
  readonly owner: string;
  /** Its effective time, Unix seconds: since when it costs, and at whose prices. */
  readonly time: number;
  readonly resource: Resource;
}

/** A file is charged by its size, which the table of files knows. */
export type Resource =
  | { readonly from: 'needs'; readonly needs: ResourceNeeds }
  | { readonly from: 'file'; readonly fileHash: string };

/** The files' own rows are written before. */
export async function insertResources(db: Db, rows: readonly ResourceRow[]): Promise<void> {
  const needs = rows.map(({ resource }) => (resource.from === 'needs' ? resource.needs : undefined));
  const files = rows.map(({ resource }) => (resource.from === 'file' ? resource.fileHash : null));
  await sql`
    insert into credit_resources (item_hash, owner, kind, created, units, mib)
    select given.item_hash, given.owner, given.kind, given.created, given.units,
      coalesce(given.mib, ${mibOf(sql`f.size_bytes`)}, 1)
    from unnest(
      ${rows.map((row) => row.itemHash)}::text[], ${rows.map((row) => row.owner)}::text[],
      ${needs.map((one) => one?.kind ?? 'storage')}::text[], ${rows.map((row) => row.time)}::float8[],
      ${needs.map((one) => one?.units ?? 0)}::bigint[], ${needs.map((one) => one?.mib ?? null)}::bigint[],
      ${files}::text[]) as given (item_hash, owner, kind, created, units, mib, file)
    left join files f on f.hash = given.file
    on conflict (item_hash) do nothing`.execute(db);
}

export async function deleteResources(db: Db, itemHashes: readonly string[]): Promise<void> {
  await sql`delete from credit_resources where item_hash = any(${itemHashes}::text[])`.execute(db);
}

export interface EntryRow extends LedgerEntry {
  readonly itemHash: string;
  readonly publisher: string;
  readonly time: number;
}

/** Of several entries with one key the first by (time, item hash, place) counts. */
async function settleKeys(db: Db, entries: readonly Pick<EntryRow, 'key'>[]): Promise<void> {
  if (entries.length === 0) return;
  const keys = entries.map(({ key }) => key);
  await sql`
    with touched as (select distinct key from unnest(${keys}::text[]) as t (key)),
    first as (
      select f.item_hash, f.place, f.key from touched cross join lateral (
        select item_hash, place, key from credit_entries e where e.key = touched.key
        order by "time", item_hash, place limit 1) f
    )
    update credit_entries e set counts = (e.item_hash, e.place) = (first.item_hash, first.place)
    from first where e.key = first.key and e.counts <> ((e.item_hash, e.place) = (first.item_hash, first.place))`.execute(
    db,
  );
}

/** An entry that is there now, or was before. */
export type Touched = Pick<EntryRow, 'key' | 'owner' | 'time'>;
const TOUCHED = sql`returning key, owner, "time"`;

/** Writes the lines of trusted publishers; those of others are left out. @returns what was written */
export async function insertEntries(db: Db, rows: readonly EntryRow[]): Promise<Touched[]> {
  const column = <T>(read: (row: EntryRow) => T) => rows.map(read);
  const { rows: made } = await sql<Touched>`
    insert into credit_entries (item_hash, place, key, kind, owner, nano, ref, "time")
    select given.item_hash, given.place, given.key, given.kind, given.owner, given.nano, given.ref, given."time"
    from unnest(
      ${column((row) => row.itemHash)}::text[], ${column((row) => row.place)}::int[], ${column((row) => row.key)}::text[],
      ${column((row) => row.kind)}::text[], ${column((row) => row.owner)}::text[],
      ${column((row) => String(row.nano))}::numeric[], ${column((row) => row.ref)}::text[],
      ${column((row) => row.time)}::float8[], ${column((row) => row.publisher)}::text[])
      as given (item_hash, place, key, kind, owner, nano, ref, "time", publisher)
    join credit_publishers on address = given.publisher
    on conflict do nothing ${TOUCHED}`.execute(db);
  await settleKeys(db, made);
  return made;
}

/** @returns what was there */
export async function deleteEntries(db: Db, itemHashes: readonly string[]): Promise<Touched[]> {
  const { rows } = await sql<Touched>`
    delete from credit_entries where item_hash = any(${itemHashes}::text[]) ${TOUCHED}`.execute(db);
  await settleKeys(db, rows);
  return rows;
}

export interface NoticeRow {
  readonly itemHash: string;
  readonly publisher: string;
  readonly time: number;
  readonly notice: CreditNotice;
}

/** Writes those of trusted publishers. @returns of whom they are */
export async function insertNotices(db: Db, rows: readonly NoticeRow[]): Promise<string[]> {
  const { rows: made } = await sql<{ owner: string }>`
    insert into credit_notices (item_hash, owner, state, credits, runs_out_at, "time")
    select given.item_hash, given.owner, given.state, given.credits, given.runs_out_at, given."time"
    from unnest(
      ${rows.map((row) => row.itemHash)}::text[], ${rows.map((row) => row.notice.address)}::text[],
      ${rows.map((row) => row.notice.state)}::text[], ${rows.map((row) => row.notice.credits)}::bigint[],
      ${rows.map((row) => row.notice.runs_out_at)}::bigint[], ${rows.map((row) => row.time)}::float8[],
      ${rows.map((row) => row.publisher)}::text[])
      as given (item_hash, owner, state, credits, runs_out_at, "time", publisher)
    join credit_publishers on address = given.publisher
    on conflict do nothing returning owner`.execute(db);
  return made.map(({ owner }) => owner);
}

/** @returns of whom they were */
export async function deleteNotices(db: Db, itemHashes: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ owner: string }>`
    delete from credit_notices where item_hash = any(${itemHashes}::text[]) returning owner`.execute(db);
  return rows.map(({ owner }) => owner);
}

/** Whether one of these is trusted with credit. */
export async function isPublisher(db: Db, addresses: readonly string[]): Promise<boolean> {
  const { rows } = await sql`
    select from credit_publishers where address = any(${addresses}::text[]) limit 1`.execute(db);
  return rows.length > 0;
}

/**
 * Makes the history of prices anew from the publishers' messages: they are few. To be called in a transaction: of several
 * processes that do so at once, each waits for the one before, and readers for none.
 * @returns whether they are others than before
 */
export async function rewritePrices(db: Db): Promise<boolean> {
  await sql`lock table credit_prices in share row exclusive mode`.execute(db);
  const before = await readAllPrices(db);
  const { rows } = await sql<{ time: number; item_hash: string; content: unknown }>`
    select m."time", m.item_hash, m.content -> 'content' as content
    from credit_publishers p join messages m on m.subject = p.address || E'\\n' || ${PRICING_KEY}
    where m.type = 'AGGREGATE' and m.status = 'processed'`.execute(db);
  const steps = listPriceSteps(
    rows.map(({ time, item_hash: itemHash, content }) => ({ time, itemHash, content })),
  );
  const priced = steps.flatMap(({ from, prices }) =>
    RESOURCE_KINDS.map((kind) => ({ from, kind, ...prices[kind] })),
  );
  await sql`delete from credit_prices`.execute(db);
  await sql`
    insert into credit_prices (kind, from_time, compute_unit, storage_mib)
    select * from unnest(
      ${priced.map((one) => one.kind)}::text[], ${priced.map((one) => one.from)}::bigint[],
      ${priced.map((one) => String(one.computeUnit))}::numeric[], ${priced.map((one) => String(one.storageMib))}::numeric[])`.execute(
    db,
  );
  return (await readAllPrices(db)) !== before;
}

async function readAllPrices(db: Db): Promise<string | null> {
  const { rows } = await sql<{ all: string | null }>`
    select string_agg(p::text, ' ' order by kind, from_time) as all from credit_prices p`.execute(db);
  return rows[0]!.all;
}
