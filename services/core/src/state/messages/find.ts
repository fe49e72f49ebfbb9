import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';

export function findMessage(db: Kysely<Schema>, hash: string): Promise<StoredMessage | undefined> {
  return db.selectFrom('messages').selectAll().where('item_hash', '=', hash).executeTakeFirst();
}

/**
 * Messages as they are to be shown. One that was rejected stays so when a FORGET names it, since as forgotten it would stand in the way of
 * another sender's copy that holds; but what it said is shown no more.
 */
export async function hideForgotten<Row extends Pick<StoredMessage, 'item_hash' | 'status'>>(
  db: Kysely<Schema>,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const rejected = rows.flatMap(({ item_hash: hash, status }) => (status === 'rejected' ? [hash] : []));
  if (rejected.length === 0) return rows;
  const named = await db
    .selectFrom('forgets')
    .select('target')
    .distinct()
    .where('target', '=', sql<string>`any(${rejected})`)
    .execute();
  const forgotten = new Set(named.map(({ target }) => target));
  return rows.map((row) => (forgotten.has(row.item_hash) ? { ...row, status: 'forgotten' } : row));
}

/** More are not told: an owner may forget one message any number of times. */
const FORGETTING_MAX = 100;

/** The FORGET messages in force that name a message. */
export async function listForgetting(db: Kysely<Schema>, hash: string): Promise<string[]> {
  const rows = await db
    .selectFrom('forgets')
    .select('forget_hash')
    .where('target', '=', hash)
    .orderBy('forget_hash')
    .limit(FORGETTING_MAX)
    .execute();
  return rows.map((row) => row.forget_hash);
}
