import {
  type Acting,
  decisiveFor,
  effectiveTime,
  narrowTo,
  parseAuthorizations,
  SECURITY_KEY,
  type SecurityElement,
} from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
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

/** Elements whose contents are in memory at once: each may be as long as a message, and an owner may write any number. */
const ELEMENTS_AT_ONCE = 8;

/** Columns of all elements that have the field, those that a later one covers, too. */
function fieldsOf(columns: RawBuilder<unknown>, where: RawBuilder<unknown>): RawBuilder<unknown> {
  const from = (table: string) => sql`select ${columns} from ${sql.table(table)}
    where ${where} and key = ${sql.lit(SECURITY_KEY)} and field = ${sql.lit(FIELD)}`;
  return sql`${from('aggregate_entries')} union all ${from('aggregate_covered')}`;
}

/** When the elements of these owners count, without what they permit. */
async function listElements(db: Kysely<Schema>, owners: readonly string[]) {
  const fields = fieldsOf(sql`owner, "time", item_hash`, sql`owner = any(${owners}::text[])`);
  const { rows } = await sql<{ owner: string; time: number; notedMs: number | null; itemHash: string }>`
    select f.owner, f."time", noted_ms as "notedMs", item_hash as "itemHash"
    from (${fields}) f join messages using (item_hash)`.execute(db);
  return rows.map((row) => ({ ...row, since: effectiveTime(row) }));
}

/**
 * What each owner's `security` aggregate ever permitted, as far as it concerns these acts.
 * @param times of the acts, Unix seconds (protocol's effectiveTime)
 */
export async function readSecurity(
  db: Kysely<Schema>,
  owners: readonly string[],
  acting: Acting,
  times: ReadonlySet<number>,
): Promise<Map<string, SecurityElement[]>> {
  const histories = new Map<string, SecurityElement[]>(owners.map((owner) => [owner, []]));
  if (owners.length === 0) return histories;
  const ofOwners = Map.groupBy(await listElements(db, owners), ({ owner }) => owner);
  const elements = [...ofOwners.values()].flatMap((ofOne) => decisiveFor(ofOne, times));
  for (let at = 0; at < elements.length; at += ELEMENTS_AT_ONCE) {
    const some = elements.slice(at, at + ELEMENTS_AT_ONCE);
    const hashes = some.map(({ itemHash }) => itemHash);
    const fields = fieldsOf(sql`item_hash as "itemHash", value`, sql`item_hash = any(${hashes}::text[])`);
    const { rows } = await sql<{ itemHash: string; value: unknown }>`${fields}`.execute(db);
    const values = new Map(rows.map(({ itemHash, value }) => [itemHash, value]));
    for (const { owner, time, since, itemHash } of some) {
      const authorizations = narrowTo(parseAuthorizations(values.get(itemHash)), acting);
      histories.get(owner)!.push({ time, since, itemHash, authorizations });
    }
  }
  return histories;
}
