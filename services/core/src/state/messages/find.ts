import type { Kysely } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';

export function findMessage(db: Kysely<Schema>, hash: string): Promise<StoredMessage | undefined> {
  return db.selectFrom('messages').selectAll().where('item_hash', '=', hash).executeTakeFirst();
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
