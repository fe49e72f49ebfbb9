import { prepared, textsOf } from '@skerry/database';
import {
  type Acting,
  AUTHORIZATIONS,
  decisiveFor,
  effectiveTime,
  isAuthorization,
  LIMITS,
  narrowTo,
  parseAuthorizations,
  SECURITY_KEY,
  type SecurityElement,
} from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { effectiveTimeOf } from '../../store/messages/effective.ts';
import type { Schema } from '../../store/schema.ts';
import { findField } from '../aggregates/aggregates.ts';
import { withTimeLimit } from '../lists/time-limit.ts';
import { type Hold, readWeighed } from '../lists/weight.ts';

/** Who may act on whose behalf, as the owners wrote it (protocol's permissions.ts says what it permits). */

/** An entry as anybody may have written it. */
export type Entry = Readonly<Record<string, unknown>> & { readonly address: string };

/** Those that permit anything. */
const entriesOf = (value: unknown): Entry[] =>
  Array.isArray(value) ? (value as unknown[]).filter(isAuthorization).map((entry) => ({ ...entry })) : [];

/** What an owner permits now. */
export async function listGranted(db: Kysely<Schema>, owner: string): Promise<Entry[]> {
  return entriesOf(await findField(db, { owner, key: SECURITY_KEY, field: AUTHORIZATIONS }));
}

/** Owners that name one address; with more of them the list would be too long to be of use. */
const OWNERS_MAX = 10_000;

interface Received {
  readonly owner: string;
  readonly entries: readonly Entry[];
}

/**
 * Who permits an address anything now, in order of owner. Throws LIST_TOO_COSTLY, and what `hold` throws.
 * @param spellings of the address: permissions name it as their owner wrote it
 * @param granter of all owners this one
 */
export function listReceived(
  db: Kysely<Schema>,
  spellings: readonly string[],
  granter: string | undefined,
  hold: Hold,
): Promise<Received[]> {
  const named = spellings.map((address) => sql`value @> ${JSON.stringify([{ address }])}::jsonb`);
  // What each permits others stays where it is: whoever names the address may name thousands.
  const own = sql`(select jsonb_agg(e order by n) from jsonb_array_elements(value) with ordinality x (e, n)
    where e ->> 'address' = any(${spellings}::text[]))`;
  const from = sql`(
    select owner, ${own} as value from (
      select owner, value from aggregate_entries
      where key = ${sql.lit(SECURITY_KEY)} and field = ${sql.lit(AUTHORIZATIONS)} and (${sql.join(named, sql` or `)})
        ${granter === undefined ? sql`` : sql`and owner = ${granter}`}
      order by owner limit ${OWNERS_MAX}) naming) a`;
  const columns = sql`a.owner, a.value`;
  const bytes = sql`octet_length(a.value::text)`;
  return withTimeLimit(db, async (on) => {
    const order = sql`order by a.owner`;
    const picked = { columns, from, order, hold, bytes, of: 'permissions' };
    const rows = await readWeighed<{ owner: string; value: unknown }>(on, picked);
    return rows.map(({ owner, value }) => ({ owner, entries: entriesOf(value) }));
  });
}

/** Elements whose contents are in memory at once: each may be as long as a message, and an owner may write any number. */
const ELEMENTS_AT_ONCE = 8;

/** Elements that have the field: the one that it belongs to, and those beneath. */
const TABLES = ['aggregate_entries', 'aggregate_covered'].map((table) => sql.table(table));
const HAS_FIELD = sql`f.owner = o.owner and f.key = ${sql.lit(SECURITY_KEY)} and f.field = ${sql.lit(AUTHORIZATIONS)}`;
/** As the index says it that finds an owner's elements by when they were noted. */
const OF_SECURITY = sql`m.type = 'AGGREGATE' and m.noted_ms is not null and m.subject like E'%\nsecurity'`;

/**
 * When elements of these owners count, without what they permit: those that may decide about acts at these times, of however many there
 * are. The last that held before all of them; those that are dated within, until a revocation makes no difference; and those that came
 * late within that time, whatever they are dated.
 */
async function listElements(db: Kysely<Schema>, owners: readonly string[], times: ReadonlySet<number>) {
  const first = Math.min(...times);
  const last = Math.max(...times) + LIMITS.revocationSeconds;
  const [firstMs, lastMs] = [Math.floor(first * 1000), Math.ceil(last * 1000)];
  const columns = sql`f.owner, f."time", m.noted_ms as "notedMs", f.item_hash as "itemHash"`;
  // Each row by its key, however many there seem to be: they are few.
  const noted = sql`cross join lateral (
    select item_hash, "time", noted_ms from messages where item_hash = f.item_hash limit 1) m`;
  const parts = TABLES.flatMap((table) => [
    sql`(select ${columns} from ${table} f ${noted}
      where ${HAS_FIELD} and f."time" <= ${first}::float8 and ${effectiveTimeOf('m')} <= ${first}::float8
      order by f."time" desc, f.item_hash desc limit 1)`,
    sql`(select ${columns} from ${table} f ${noted}
      where ${HAS_FIELD} and f."time" > ${first}::float8 and f."time" <= ${last}::float8)`,
    sql`(select ${columns} from messages m cross join lateral (
        select owner, "time", item_hash from ${table} f
        where ${HAS_FIELD} and f."time" = m."time" and f.item_hash = m.item_hash limit 1) f
      where ${OF_SECURITY} and m.subject = o.owner || E'\n' || ${sql.lit(SECURITY_KEY)}
        and m.noted_ms > ${firstMs}::bigint and m.noted_ms <= ${lastMs}::bigint)`,
  ]);
  const { rows } = await sql<{
    owner: string;
    time: number;
    notedMs: number | null;
    itemHash: string;
  }>`${prepared(owners)}
    select e.* from (select distinct unnest(${textsOf(owners)}) as owner) o cross join lateral (
      ${sql.join(parts, sql` union `)}) e`.execute(db);
  return rows.map((row) => ({ ...row, since: effectiveTime(row) }));
}

/** What elements permit, as anybody may have written it. */
async function readValues(
  db: Kysely<Schema>,
  elements: readonly { readonly owner: string; readonly time: number; readonly itemHash: string }[],
) {
  const given = sql`unnest(${elements.map(({ owner }) => owner)}::text[], ${elements.map(({ time }) => time)}::float8[],
    ${elements.map(({ itemHash }) => itemHash)}::text[]) as g (owner, "time", item_hash)`;
  const from = (table: string) => sql`
    select f.item_hash as "itemHash", f.value from ${given} join ${sql.table(table)} f
    on f.owner = g.owner and f."time" = g."time" and f.item_hash = g.item_hash
    where f.key = ${sql.lit(SECURITY_KEY)} and f.field = ${sql.lit(AUTHORIZATIONS)}`;
  const { rows } = await sql<{ itemHash: string; value: unknown }>`
    ${from('aggregate_entries')} union all ${from('aggregate_covered')}`.execute(db);
  return rows;
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
  const ofOwners = Map.groupBy(await listElements(db, owners, times), ({ owner }) => owner);
  const elements = [...ofOwners.values()].flatMap((ofOne) => decisiveFor(ofOne, times));
  for (let at = 0; at < elements.length; at += ELEMENTS_AT_ONCE) {
    const some = elements.slice(at, at + ELEMENTS_AT_ONCE);
    const rows = await readValues(db, some);
    const values = new Map(rows.map(({ itemHash, value }) => [itemHash, value]));
    for (const { owner, time, since, itemHash } of some) {
      const authorizations = narrowTo(parseAuthorizations(values.get(itemHash)), acting);
      histories.get(owner)!.push({ time, since, itemHash, authorizations });
    }
  }
  return histories;
}
