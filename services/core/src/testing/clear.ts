import { sql } from 'kysely';
import { keepDigest, NO_MESSAGES } from '../state/message-set.ts';
import type { TestCore } from './core.ts';

/** What follows from messages, beside themselves. */
const TABLES = [
  ...['messages', 'message_tags', 'totals', 'dependencies', 'reconsider', 'forgets', 'aggregates'],
  ...[
    'aggregate_entries',
    'aggregate_covered',
    'amended_posts',
    'instances',
    'programs',
    'file_pins',
    'events',
  ],
  ...['credit_resources', 'credit_entries', 'credit_notices'],
] as const;

/** Messages go, with all that follows from them; the schema stays. @param more tables that are emptied as well */
export async function clearMessages(
  { rooms: { db } }: TestCore,
  more: readonly string[] = [],
): Promise<void> {
  for (const table of [...TABLES, ...more]) await sql`delete from ${sql.table(table)}`.execute(db);
  await keepDigest(NO_MESSAGES).execute(db);
}
