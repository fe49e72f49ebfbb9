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
  const hashes = rows.map((row) => row.item_hash);
  if (hashes.length === 0) return { hashes, messages: [] };
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
