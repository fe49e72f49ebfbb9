import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../schema.ts';

/**
 * Blobs that are about to be removed (table `doomed_blobs`). Each is on the list for longer than storing takes. So who stores the same bytes sees it
 * there beforehand, in any process, and takes it off; and who does not see it keeps its blob so soon that the sweep finds that young.
 */

/** Notes blobs that nobody keeps. Those that are on the list already stay as they are. */
export async function doom(db: Kysely<Schema>, hashes: readonly string[], nowMs: number): Promise<void> {
  if (hashes.length === 0) return;
  await sql`
    insert into doomed_blobs (hash, doomed_ms)
    select hash, ${nowMs}::bigint from unnest(${hashes}::text[]) as hash on conflict do nothing`.execute(db);
}

/** To be called before anything of these is kept, or relied on to be there. Waits for a removal that is under way. */
export async function spare(db: Kysely<Schema>, hashes: readonly string[]): Promise<void> {
  await sql`delete from doomed_blobs where hash = any(${hashes}::text[])`.execute(db);
}

/** Those that are on the list since before then, the longest first. A clock that was set back holds none up for ever. */
export async function listDoomed(
  db: Kysely<Schema>,
  {
    beforeMs,
    afterMs,
    limit,
  }: { readonly beforeMs: number; readonly afterMs: number; readonly limit: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('doomed_blobs')
    .select('hash')
    .where(({ eb, or }) => or([eb('doomed_ms', '<=', beforeMs), eb('doomed_ms', '>', afterMs)]))
    .orderBy('doomed_ms')
    .limit(limit)
    .execute();
  return rows.map(({ hash }) => hash);
}

/** Whether one is still on the list: whoever stores it waits until the transaction ends. */
export async function holdDoomed(trx: Transaction<Schema>, hash: string): Promise<boolean> {
  const row = await trx
    .selectFrom('doomed_blobs')
    .select('hash')
    .where('hash', '=', hash)
    .forUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes one off the list to remove it, unless somebody else did: who stores it waits until the transaction ends. */
export async function takeDoomed(trx: Transaction<Schema>, hash: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('doomed_blobs')
    .where('hash', '=', hash)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}
