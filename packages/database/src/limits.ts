import type { Logger } from '@skerry/kit';
import type pg from 'pg';
import type { Reached } from './hosts.ts';
import { withClient } from './reach.ts';

/** Limits of a session, in milliseconds. No request of the node is worth more; a migration lifts these for itself. */
const LIMITS = {
  statement_timeout: 60_000,
  lock_timeout: 30_000,
  idle_in_transaction_session_timeout: 60_000,
} as const satisfies pg.ClientConfig;

/** As PgBouncer refuses a parameter of a connection that it does not know. */
const PROTOCOL_VIOLATION = '08P01';

interface InForce {
  readonly user: string;
  readonly missing: readonly string[] | null;
}

const ASK = `
  select current_user as user, array_agg(name) filter (where current_setting(name) = '0') as missing
  from unnest($1::text[]) as name`;

/**
 * The limits that connections ask for. A pooler may refuse or drop them, as PgBouncer does; then nothing is asked for, and it is
 * said how the role gets them. What fails otherwise is left to the pool.
 */
export async function findLimits(connection: Reached, log: Logger): Promise<Partial<typeof LIMITS>> {
  const ask = async (limits: Partial<typeof LIMITS>) => {
    const { rows } = await withClient({ ...connection, ...limits }, (client) =>
      client.query<InForce>(ASK, [Object.keys(LIMITS)]),
    );
    const { user, missing } = rows[0]!;
    if (missing) log.warn({ user, missing }, 'the database sets no time limits; set them for the role');
    return limits;
  };
  try {
    return await ask(LIMITS);
  } catch (error) {
    if ((error as { code?: unknown }).code !== PROTOCOL_VIOLATION) return LIMITS;
    return ask({});
  }
}
