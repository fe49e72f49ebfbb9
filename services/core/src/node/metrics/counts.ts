import { type Kysely, sql } from 'kysely';
import { countAll } from '../../state/lists/totals.ts';
import type { Schema } from '../../store/schema.ts';

/** Counted row by row up to here; beyond it PostgreSQL's own estimate, which autovacuum keeps, is near enough for a graph. */
const COUNTED_EXACTLY = 100_000;

async function countFiles(db: Kysely<Schema>): Promise<number> {
  const { rows } = await sql<{ counted: number; estimate: number }>`
    select (select count(*) from (select from files limit ${COUNTED_EXACTLY + 1}) as first) as counted,
      (select reltuples::bigint from pg_class where oid = to_regclass('files')) as estimate`.execute(db);
  const { counted, estimate } = rows[0]!;
  return counted > COUNTED_EXACTLY ? Math.max(counted, estimate) : counted;
}

async function countPending(db: Kysely<Schema>): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select count(*) as total from (select from messages where status = 'pending' limit ${COUNTED_EXACTLY}) as first`.execute(
    db,
  );
  return rows[0]!.total;
}

/** How much the node keeps; cheap at any size. `messages`: in force. */
export async function countKept(
  db: Kysely<Schema>,
): Promise<{ messages: number; pending: number; files: number }> {
  const [messages, pending, files] = await Promise.all([countAll(db), countPending(db), countFiles(db)]);
  return { messages, pending, files };
}
