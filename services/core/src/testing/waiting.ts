import { type Kysely, sql } from 'kysely';
import type { Schema } from '../store/schema.ts';

/** Whether a statement on this database waits for what another transaction has locked. */
export async function isAnyWaiting(db: Kysely<Schema>): Promise<boolean> {
  const { rows } = await sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return rows.length > 0;
}
