import { textsOf, type Write } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { lockEvents } from '../../notify/events/append.ts';
import type { Schema } from '../../store/schema.ts';
import type { StoredMessage } from '../stored.ts';

/**
 * The line of messages that are to be decided again (table `reconsider`). They are put in line in the transaction that
 * changed what they hang on, and taken from it in the one that decides them: no crash loses one.
 */

/** Puts in line what hangs on keys, and the messages of hashes. */
export const lineUp = (changedKeys: readonly string[], hashes: readonly string[]): RawBuilder<unknown> => sql`
  insert into reconsider (item_hash)
  select item_hash from dependencies where key = any(${textsOf(changedKeys)})
  union select item_hash from messages where item_hash = any(${textsOf(hashes)})
  on conflict do nothing`;

/** @returns whether anything was put in line */
export async function putInLine(
  db: Kysely<Schema>,
  changedKeys: readonly string[],
  hashes: readonly string[],
): Promise<boolean> {
  if (changedKeys.length + hashes.length === 0) return false;
  const { numAffectedRows } = await lineUp(changedKeys, hashes).execute(db);
  return (numAffectedRows ?? 0n) > 0n;
}

/**
 * The same from outside of a batch, once nobody else writes. A batch that did not see yet what changed has told by then what it left
 * hanging on it, and no two wait for each other's rows.
 */
export const putInLineAlone = (
  write: Write<Schema>,
  changedKeys: readonly string[],
  hashes: readonly string[],
): Promise<boolean> =>
  write(async ({ trx }) => {
    await lockEvents(trx);
    return putInLine(trx, changedKeys, hashes);
  });

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
  const line = db.selectFrom('reconsider').select('item_hash').orderBy('item_hash').limit(limit);
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
