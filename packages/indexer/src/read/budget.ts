import { isTooLong } from '@skerry/database';
import type pg from 'pg';

/** So much of a budget may be used before the database is told what is left of it: cheap lists need not tell it anything. */
const UNTOLD_PART = 1 / 10;

/** What is asked next has no time left, or none without a turn. */
export class NoTimeLeft extends Error {}

/** Whether something was not read since it would take longer than it may. */
export const tookTooLong = (error: unknown): boolean => error instanceof NoTimeLeft || isTooLong(error);

/**
 * The same connection, in a transaction that began with this `statement_timeout`, for statements that have the time together: there may be
 * one for each partition of a chain. They take a tenth more at most. Throws NoTimeLeft.
 *
 * @param budgetMs whole milliseconds
 * @param now milliseconds of a clock that never goes back
 */
export function withinBudget(client: pg.PoolClient, budgetMs: number, now: () => number): pg.PoolClient {
  const endMs = now() + budgetMs;
  let toldMs = budgetMs;
  const query = async (text: string, values?: unknown[]) => {
    const leftMs = Math.floor(endMs - now());
    if (leftMs <= 0) throw new NoTimeLeft();
    if (toldMs - leftMs > budgetMs * UNTOLD_PART) {
      await client.query(`set local statement_timeout = ${leftMs}`);
      toldMs = leftMs;
    }
    return client.query(text, values);
  };
  return { query } as unknown as pg.PoolClient;
}
