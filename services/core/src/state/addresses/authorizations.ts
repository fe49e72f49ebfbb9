import { SECURITY_KEY } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';

/** Who may act on whose behalf, as the owners wrote it (protocol's permissions.ts says what it permits). */

const FIELD = 'authorizations';

/** An entry as anybody may have written it. */
export type Entry = Readonly<Record<string, unknown>> & { readonly address: string };

const isEntry = (value: unknown): value is Entry =>
  typeof value === 'object' && value !== null && typeof (value as { address?: unknown }).address === 'string';
const entriesOf = (value: unknown): Entry[] => (Array.isArray(value) ? value.filter(isEntry) : []);

/** What an owner permits now. */
export async function listGranted(db: Kysely<Schema>, owner: string): Promise<Entry[]> {
  const row = await db
    .selectFrom('aggregate_entries')
    .select('value')
    .where('owner', '=', owner)
    .where('key', '=', SECURITY_KEY)
    .where('field', '=', FIELD)
    .executeTakeFirst();
  return entriesOf(row?.value);
}

/** Owners that name one address; with more of them the list would be too long to be of use. */
const OWNERS_MAX = 10_000;

interface Received {
  readonly owner: string;
  readonly entries: readonly Entry[];
}

/**
 * Who permits an address anything now, in order of owner.
 * @param spellings of the address: permissions name it as their owner wrote it
 */
export function listReceived(db: Kysely<Schema>, spellings: readonly string[]): Promise<Received[]> {
  const named = spellings.map((address) => sql`value @> ${JSON.stringify([{ address }])}::jsonb`);
  return withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ owner: string; value: unknown }>`
      select owner, value from aggregate_entries
      where key = ${sql.lit(SECURITY_KEY)} and field = ${sql.lit(FIELD)} and (${sql.join(named, sql` or `)})
      order by owner limit ${OWNERS_MAX}`.execute(on);
    return rows.map(({ owner, value }) => ({
      owner,
      entries: entriesOf(value).filter(({ address }) => spellings.includes(address)),
    }));
  });
}
