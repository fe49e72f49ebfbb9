import { isTooLong } from '@skerry/database';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

/** The longest that one list may keep the database busy. */
const LIST_TIMEOUT_MS = 5_000;

/**
 * A server of one's own may compile a query that looks costly first (`jit`), which takes a second, or start processes for it,
 * which takes ten milliseconds; nearly all of these queries take less, and others want the processors.
 */
const PLAIN = sql`set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`;

/** Runs a query that may have to look at many rows for few results. Throws LIST_TOO_COSTLY. */
export async function withTimeLimit<T>(
  db: Kysely<Schema>,
  run: (db: Kysely<Schema>) => Promise<T>,
  timeoutMs = LIST_TIMEOUT_MS,
): Promise<T> {
  const runWithin = async (trx: Kysely<Schema>) => {
    await sql`select set_config('statement_timeout', ${String(timeoutMs)}, true), ${PLAIN}`.execute(trx);
    return run(trx);
  };
  try {
    return await (db.isTransaction
      ? runWithin(db)
      : db.transaction().setAccessMode('read only').execute(runWithin));
  } catch (error) {
    if (!isTooLong(error)) throw error;
    throw new AppError(
      'LIST_TOO_COSTLY',
      'this list would have to read too many messages; use fewer filters, or continue with a cursor',
      { cause: error },
    );
  }
}
