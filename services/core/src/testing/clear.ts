import { sql } from 'kysely';
import { keepDigest, NO_MESSAGES } from '../store/message-set.ts';
import { MESSAGE_TABLES } from '../store/schema.ts';
import type { TestCore } from './core.ts';

/** A running node knows the numbers of shapes by heart, and the digest is set to that of no messages. */
const KEPT: readonly string[] = ['shapes', 'digests'] satisfies readonly (typeof MESSAGE_TABLES)[number][];

/** Messages go, with all that follows from them; the schema stays. @param more tables that are emptied as well */
export async function clearMessages(
  { rooms: { db } }: TestCore,
  more: readonly string[] = [],
): Promise<void> {
  const tables = MESSAGE_TABLES.filter((table) => !KEPT.includes(table));
  for (const table of [...tables, ...more]) await sql`delete from ${sql.table(table)}`.execute(db);
  await keepDigest(NO_MESSAGES).execute(db);
}
