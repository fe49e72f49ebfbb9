import { type Kysely, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';

/** Counted row by row up to here; beyond it PostgreSQL's own estimate, which autovacuum keeps, is near enough for a graph. */
const COUNTED_EXACTLY = 100_000;

async function countRows(db: Kysely<Schema>, table: 'messages' | 'files'): Promise<number> {
  const { rows } = await sql<{ counted: number; estimate: number }>`
    select (select count(*) from (select from ${sql.table(table)} limit ${COUNTED_EXACTLY + 1}) as first) as counted,
      (select reltuples::bigint from pg_class where oid = to_regclass(${table})) as estimate`.execute(db);
  const { counted, estimate } = rows[0]!;
  return counted > COUNTED_EXACTLY ? Math.max(counted, estimate) : counted;
}

/** How much the node keeps; cheap at any size. */
export async function countKept(db: Kysely<Schema>): Promise<{ messages: number; files: number }> {
  const [messages, files] = await Promise.all([countRows(db, 'messages'), countRows(db, 'files')]);
  return { messages, files };
}
