import { type Kysely, sql } from 'kysely';

/** How long to wait for another process that does the same work on the same database: it may read every message. */
const TURN_TIMEOUT_MS = 600_000;

/**
 * Lets one of the nodes that start on one database do what is done once, until its transaction ends; the others then look again
 * and find it done. A table lock, which every PostgreSQL has; readers are not held up.
 */
export async function lockForStart<Schema>(trx: Kysely<Schema>, table: string): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(TURN_TIMEOUT_MS)}`.execute(trx);
  await sql`lock table ${sql.table(table)} in share row exclusive mode`.execute(trx);
}
