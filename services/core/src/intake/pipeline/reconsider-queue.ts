import { textsOf, type Write } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { ReadContentFile } from '../../store/content-reader.ts';
import type { Change } from '../../store/dependency-keys.ts';
import type { Schema } from '../../store/schema.ts';
import { lockWrites } from '../../store/write-lock.ts';
import { rowsOf } from '../effect.ts';
import { acceptStored, ContentUnreadable, type StoredMessage } from '../stored.ts';
import type { Candidate } from './decided.ts';
import { isGone } from './load-known.ts';
import { MAX_BATCH, MAX_BATCH_ROWS } from './queue.ts';

/**
 * The line of messages that are to be decided again (table `reconsider`). They are put in line in the transaction that
 * changed what they hang on, and taken from it in the one that decides them: no crash loses one.
 */

/** Of what hangs on one key so many are put in line at once: anybody may write any number of messages that hang on one. */
export const LINE_PAGE = 1_000;
const PAGE = sql.lit(LINE_PAGE);

/** What hangs on each of some keys, a page of each. @param of the keys, as rows of a `key` */
const pageOfEach = (of: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select k.key, d.item_hash from (select distinct key from ${of} as k (key)) k
  cross join lateral (
    select item_hash from dependencies where key = k.key order by item_hash limit ${PAGE}) d`;

/** Of more keys at once it is first asked whether anything much hangs on any. */
const ASKED_ONE_BY_ONE = 64;

/**
 * The same, as parts of a statement. A batch of a node that catches up changes thousands of keys, and mostly next to nothing waits for
 * any of them: while less than a page does in all, that is looked through, and not the keys.
 */
function hangingOn(keys: readonly string[]): RawBuilder<unknown> {
  if (keys.length <= ASKED_ONE_BY_ONE)
    return sql`hanging as materialized (${pageOfEach(sql`unnest(${textsOf(keys)})`)})`;
  return sql`
    changed_keys as materialized (select ${textsOf(keys)} as list),
    few as materialized (select key, item_hash from dependencies limit ${PAGE}),
    size as materialized (select count(*) < ${PAGE} as is_few from few),
    hanging as materialized (
      select key, item_hash from few
      where key in (select unnest(list) from changed_keys where (select is_few from size))
      union all
      ${pageOfEach(sql`unnest((select list from changed_keys where not (select is_few from size)))`)})`;
}

/**
 * Puts in line what hangs on keys, and the messages of hashes: what to begin a statement with, and what to do in it. What stands in line
 * keeps its turn, and so does what is left hanging: a key that changes all the time comes to its end nevertheless.
 */
export const lineUp = (
  changedKeys: readonly string[],
  hashes: readonly string[],
): { readonly begin: RawBuilder<unknown>; readonly insert: RawBuilder<unknown> } => ({
  begin: sql`
    ${hangingOn(changedKeys)},
    left_over as (
      insert into reconsider_rest as r (key, after)
      select key, max(item_hash) from hanging group by key having count(*) = ${PAGE}
      on conflict (key) do update set again = excluded.after where r.after <> excluded.after)`,
  insert: sql`
    insert into reconsider (item_hash)
    select item_hash from hanging
    union select item_hash from messages where item_hash = any(${textsOf(hashes)})
    order by item_hash
    on conflict do nothing`,
});

/** @returns whether anything was put in line */
export async function putInLine(
  db: Kysely<Schema>,
  changedKeys: readonly string[],
  hashes: readonly string[],
): Promise<boolean> {
  if (changedKeys.length + hashes.length === 0) return false;
  const { begin, insert } = lineUp(changedKeys, hashes);
  const { numAffectedRows } = await sql`with ${begin} ${insert}`.execute(db);
  return (numAffectedRows ?? 0n) > 0n;
}

/**
 * The same from outside of a batch, once nobody else writes. A batch that did not see yet what changed has told by then what it left
 * hanging on it, and no two wait for each other's rows.
 * @param change in the same transaction
 */
export const putInLineAlone = (
  write: Write<Schema>,
  changedKeys: readonly string[],
  hashes: readonly string[],
  change?: Change,
): Promise<boolean> =>
  write(async ({ trx }) => {
    await lockWrites(trx);
    await change?.(trx);
    return putInLine(trx, changedKeys, hashes);
  });

/**
 * Puts in line some more of what hangs on a key on which much hangs: of the one that waited longest, so that a key which changes all
 * the time holds up no other.
 * @returns whether there was anything left
 */
export async function putRestInLine(db: Kysely<Schema>, write: Write<Schema>): Promise<boolean> {
  const { rows } = await sql`select from reconsider_rest limit 1`.execute(db);
  if (rows.length === 0) return false;
  await write(async ({ trx }) => {
    await lockWrites(trx);
    await sql`
      with next as materialized (select key, after, again from reconsider_rest order by turn limit 1),
      page as materialized (
        select n.key, d.item_hash from next n cross join lateral (
          select item_hash from dependencies where key = n.key and item_hash > n.after
          order by item_hash limit ${PAGE}) d),
      moved as (
        update reconsider_rest r set after = coalesce(p.last, n.again), turn = default,
          again = case when p.last is not null then n.again end
        from next n left join (
          select key, max(item_hash) as last from page group by key having count(*) = ${PAGE}) p using (key)
        where r.key = n.key and (p.last is not null or n.again is not null) returning r.key),
      ended as (
        delete from reconsider_rest r using next n where r.key = n.key and not exists (select from moved))
      insert into reconsider (item_hash) select item_hash from page order by item_hash
      on conflict do nothing`.execute(trx);
  });
  return true;
}

/** When it is the turn of what is left hanging, however long the line is: each time that a page of the line was decided. */
export class RestTurns {
  #decided = 0;

  note(decided: number): void {
    this.#decided += decided;
  }

  async take(db: Kysely<Schema>, write: Write<Schema>): Promise<void> {
    if (this.#decided < LINE_PAGE) return;
    await putRestInLine(db, write);
    this.#decided = 0;
  }
}

/** What messages say that are decided again at once, in bytes: what is made of it takes up to twenty times as much. */
const LINE_BYTES = 8 * 1024 * 1024;

/** The first of them that are not too much together, one at least. */
async function fitting(db: Kysely<Schema>, hashes: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ item_hash: string; bytes: number }>`
    select m.item_hash, coalesce(octet_length(m.source_text), f.size_bytes, 0)::bigint as bytes
    from messages m left join files f on f.hash = m.item_hash
    where m.item_hash = any(${hashes}::text[])`.execute(db);
  const bytesOf = new Map(rows.map(({ item_hash, bytes }) => [item_hash, bytes]));
  let sum = 0;
  const end = hashes.findIndex((hash, index) => {
    sum += bytesOf.get(hash) ?? 0;
    return index > 0 && sum > LINE_BYTES;
  });
  return hashes.slice(0, end === -1 ? hashes.length : end);
}

/** The first in line but for those that rest. `hashes` also has those that are no messages here. */
export async function readLine(
  db: Kysely<Schema>,
  limit: number,
  resting: readonly string[],
): Promise<{ hashes: string[]; messages: StoredMessage[] }> {
  const line = db.selectFrom('reconsider').select('item_hash').orderBy('turn').limit(limit);
  const rows = await (resting.length === 0
    ? line
    : line.where('item_hash', '<>', sql<string>`all(${resting}::text[])`)
  ).execute();
  const inLine = rows.map((row) => row.item_hash);
  if (inLine.length === 0) return { hashes: [], messages: [] };
  const hashes = await fitting(db, inLine);
  const messages = await db
    .selectFrom('messages')
    .selectAll()
    .where('item_hash', 'in', hashes)
    .orderBy('time')
    .orderBy('item_hash')
    .execute();
  return { hashes, messages };
}

interface ReadingOptions {
  readonly readContentFile: ReadContentFile;
  readonly nowMs: number;
  /** How long a message that comes back may lack something. */
  readonly horizonMs: number;
}

/**
 * Messages in line as candidates, but for those whose content cannot be read now.
 * @param onUnread told of each of those
 */
export async function readContents(
  rows: readonly StoredMessage[],
  { readContentFile, nowMs, horizonMs }: ReadingOptions,
  onUnread: (hash: string, error: ContentUnreadable) => void,
): Promise<Candidate[]> {
  const nowSeconds = Math.floor(nowMs / 1000);
  const read = await Promise.allSettled(rows.map((row) => acceptStored(row, readContentFile, nowSeconds)));
  return read.flatMap((one, index) => {
    const row = rows[index]!;
    const decideByMs = isGone(row) ? nowMs + horizonMs : row.decide_by_ms;
    if (one.status === 'fulfilled') return [{ accepted: one.value, decideByMs }];
    if (!(one.reason instanceof ContentUnreadable)) throw one.reason;
    onUnread(row.item_hash, one.reason);
    return [];
  });
}

/** The first of them from which not too many rows follow, one at least. */
export function fittingRows(candidates: readonly Candidate[]): readonly Candidate[] {
  let rows = 0;
  const end = candidates.findIndex(({ accepted }, index) => {
    rows += rowsOf(accepted.changes);
    return index > 0 && rows > MAX_BATCH_ROWS;
  });
  return end === -1 ? candidates : candidates.slice(0, end);
}

/** Who writes waits about so long for those in line that are before it, in milliseconds. */
const LINE_MS = 200;
/** Fewer at a time save those who wait nothing. */
const LINE_LEAST = 32;

/** How many of the line to decide at once, after so many that took so long. @param limit of what was read to find them */
export function nextLineLimit(limit: number, decided: number, tookMs: number): number {
  const timely = tookMs > LINE_MS ? Math.ceil((decided * LINE_MS) / tookMs) : MAX_BATCH;
  return Math.min(2 * limit, MAX_BATCH, Math.max(timely, LINE_LEAST));
}

export async function takeFromLine(db: Kysely<Schema>, hashes: readonly string[]): Promise<void> {
  await sql`delete from reconsider where item_hash = any(${hashes}::text[])`.execute(db);
}

/** Messages that still lack something at the end of their time. */
export async function findExpired(db: Kysely<Schema>, nowMs: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('messages')
    .select('item_hash')
    .where('status', '=', 'pending')
    .where('decide_by_ms', '<=', nowMs)
    .limit(limit)
    .execute();
  return rows.map((row) => row.item_hash);
}
