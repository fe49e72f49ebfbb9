import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { getAccount } from '../state/credits/accounts.ts';
import type { Schema } from '../store/schema.ts';
import type { Accepted } from './accepted.ts';

/**
 * Refuses to start an instance whose owner's credit is used up: until the credit service stops it again it would run for nothing,
 * time after time. Throws CREDIT_INSUFFICIENT.
 *
 * @param now milliseconds since 1970
 */
export const createStartCheck =
  (db: Kysely<Schema>, now: () => number) =>
  async ({ needs: { starts } }: Accepted): Promise<void> => {
    if (starts === undefined) return;
    const { rows } = await sql<{ owner: string }>`
      select owner from messages where item_hash = ${starts} and type = 'INSTANCE'
        and (select enforcement from credit_derivation)`.execute(db);
    const [instance] = rows;
    if (!instance) return;
    const { state, balance } = await getAccount(db, instance.owner, now() / 1000);
    // What was bought since counts before the service says so.
    if (state !== 'exhausted' || balance > 0n) return;
    throw new AppError(
      'CREDIT_INSUFFICIENT',
      `the credit of ${instance.owner} is used up, so the instance would be stopped again; buy credit first`,
    );
  };
