import type { Kysely } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';

export function findMessage(db: Kysely<Schema>, hash: string): Promise<StoredMessage | undefined> {
  return db.selectFrom('messages').selectAll().where('item_hash', '=', hash).executeTakeFirst();
}

/** The FORGET messages in force that name a message. */
export async function listForgetting(db: Kysely<Schema>, hash: string): Promise<string[]> {
  const rows = await db
    .selectFrom('forgets')
    .select('forget_hash')
    .where('target', '=', hash)
    .orderBy('forget_hash')
    .execute();
  return rows.map((row) => row.forget_hash);
}
