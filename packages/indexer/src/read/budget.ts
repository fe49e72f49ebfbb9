import type { Budget } from '@skerry/database';
import type pg from 'pg';

/** The same connection, for statements that have the budget together: there may be one for each partition of a chain. Throws NoTimeLeft. */
export function withinBudget(client: pg.PoolClient, budget: Budget): pg.PoolClient {
  const query = async (text: string, values?: unknown[]) => {
    budget.check();
    const nextMs = budget.next();
    if (nextMs !== undefined) await client.query(`set local statement_timeout = ${nextMs}`);
    return client.query(text, values);
  };
  return { query } as unknown as pg.PoolClient;
}
