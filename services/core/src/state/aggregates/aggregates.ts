import { type Page, prepared } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { spelledOwner } from '../../store/messages/spelling.ts';
import type { Schema } from '../../store/schema.ts';
import { isDeep, withTimeLimit } from '../lists/time-limit.ts';
import { HOLDS_NOTHING, type Hold, holdFound, LIGHT_BYTES } from '../lists/weight.ts';

export interface Aggregate {
  readonly owner: string;
  /** The owner as the latest element spells it. */
  readonly spelling: string;
  readonly key: string;
  readonly content: Readonly<Record<string, unknown>>;
  /** Unix seconds of the first and of the latest element. */
  readonly created: number;
  readonly time: number;
  /** The latest element. */
  readonly itemHash: string;
}

export interface AggregateFilter {
  readonly owners?: readonly string[] | undefined;
  readonly keys?: readonly string[] | undefined;
  /** Top-level fields: aggregates that have one of them, with these fields alone. */
  readonly fields?: readonly string[] | undefined;
}

export interface AggregatePage extends Page {
  /** Unix seconds of the last change where it is left out, else of the first. */
  readonly sortedBy?: 'created' | undefined;
  readonly oldestFirst?: boolean | undefined;
  /** The last aggregate of the page before; `time` is what the list is sorted by. */
  readonly after?: { readonly time: number; readonly owner: string; readonly key: string } | undefined;
}

const timeOf = ({ sortedBy }: AggregatePage) => sql.ref(`a.${sortedBy ?? 'time'}`);
const orderOf = (page: AggregatePage) =>
  sql`order by ${timeOf(page)} ${page.oldestFirst ? sql`asc` : sql`desc`}, a.owner, a.key`;

/** What comes after the cursor in the list's order. */
function afterCursor(page: AggregatePage): RawBuilder<unknown>[] {
  const { after, oldestFirst } = page;
  if (!after) return [];
  const beyond = oldestFirst ? sql`>` : sql`<`;
  return [
    sql`${timeOf(page)} ${beyond}= ${after.time}::float8`,
    sql`(${timeOf(page)} ${beyond} ${after.time}::float8 or (a.owner, a.key) > (${after.owner}, ${after.key}))`,
  ];
}

interface Row {
  owner: string;
  spelling: string | null;
  key: string;
  created: number;
  time: number;
  item_hash: string;
  content: Record<string, unknown> | null;
}

const aggregateOf = (row: Row): Aggregate => ({
  owner: row.owner,
  spelling: row.spelling ?? row.owner,
  key: row.key,
  content: row.content ?? {},
  created: row.created,
  time: row.time,
  itemHash: row.item_hash,
});

/** The fields of the aggregate `a`. */
const fieldsOf = (fields: readonly string[] | undefined) => sql`aggregate_entries e
  where e.owner = a.owner and e.key = a.key ${fields ? sql`and e.field = any(${fields}::text[])` : sql``}`;

interface Picked {
  /** Rows of aggregates. */
  readonly picked: RawBuilder<unknown>;
  readonly order?: RawBuilder<unknown>;
  /** Of their fields these alone. */
  readonly fields?: readonly string[] | undefined;
  readonly hold: Hold;
  /** What the statement begins with. */
  readonly begin?: RawBuilder<unknown>;
}

/** Aggregates with so many fields, and so many bytes of them where the database keeps them, are put together without asking what they weigh. */
const AT_ONCE = { fields: 1_000, bytes: LIGHT_BYTES } as const;

const LATEST = sql`(select ${spelledOwner('m')} from messages m where m.item_hash = a.item_hash) as spelling`;

/** In one statement, which looks at few fields. Undefined where they are many, or heavy. Throws what `hold` throws. */
async function putTogetherAtOnce(
  db: Kysely<Schema>,
  { picked, order = sql``, fields, hold, begin = sql`` }: Picked,
): Promise<Aggregate[] | undefined> {
  const { rows } = await sql<Row & { bytes: number | null }>`${begin}
    with picked as materialized (${picked}),
    seen as materialized (
      select e.field, e.value from picked a cross join lateral (select e.field, e.value from ${fieldsOf(fields)} offset 0) e
      limit ${sql.lit(AT_ONCE.fields + 1)}),
    kept as materialized (
      select count(*) as fields, coalesce(sum(octet_length(field) + pg_column_size(value)), 0) as bytes from seen),
    weight as materialized (
      select case when fields <= ${sql.lit(AT_ONCE.fields)} and bytes <= ${sql.lit(AT_ONCE.bytes)}
        then (select coalesce(sum(octet_length(field) + octet_length(value::text)), 0) from seen)::bigint end as bytes from kept)
    select a.*, bytes, case when bytes <= ${sql.lit(LIGHT_BYTES)} then (
      select jsonb_object_agg(e.field, e.value) from ${fieldsOf(fields)}) end as content, ${LATEST}
    from picked a cross join weight ${order}`.execute(db);
  const bytes = rows.length === 0 ? 0 : rows[0]!.bytes;
  if (bytes === null || bytes > LIGHT_BYTES) return undefined;
  holdFound(db, bytes, hold, 'aggregates');
  return rows.map(aggregateOf);
}

/** It is first found out how much they hold, which takes the longer the more fields they have. Throws as `putTogether` does. */
async function putTogetherWeighed(
  db: Kysely<Schema>,
  { picked, order = sql``, fields, hold }: Picked,
): Promise<Aggregate[]> {
  const { rows: weights } = await sql<{ bytes: number }>`
    with picked as materialized (${picked})
    select coalesce(sum((
      select sum(octet_length(e.field) + octet_length(e.value::text)) from ${fieldsOf(fields)})), 0)::bigint as bytes
    from picked a`.execute(db);
  holdFound(db, weights[0]!.bytes, hold, 'aggregates');
  const { rows } = await sql<Row>`
    with picked as materialized (${picked})
    select a.*, (select jsonb_object_agg(e.field, e.value) from ${fieldsOf(fields)}) as content, ${LATEST}
    from picked a ${order}`.execute(db);
  return rows.map(aggregateOf);
}

/**
 * Aggregates put together. Any number of messages may have added to one: what is more than nearly all have is read as a list that takes
 * long. Throws LIST_TOO_COSTLY, and what `hold` and the turns of whoever asks throw.
 */
const putTogether = async (db: Kysely<Schema>, asked: Picked): Promise<Aggregate[]> =>
  (await putTogetherAtOnce(db, asked)) ?? withTimeLimit(db, (on) => putTogetherWeighed(on, asked));

/** Throws LIST_TOO_COSTLY, and what `hold` and the turns of whoever asks throw. */
export async function findAggregate(
  db: Kysely<Schema>,
  owner: string,
  key: string,
  hold: Hold = HOLDS_NOTHING,
): Promise<Aggregate | undefined> {
  const picked = sql`select a.* from aggregates a where a.owner = ${owner} and a.key = ${key}`;
  return (await putTogether(db, { picked, hold, begin: prepared() }))[0];
}

const where = (conditions: readonly RawBuilder<unknown>[]) =>
  conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;

function conditionsOf({ owners, keys, fields }: AggregateFilter): RawBuilder<unknown>[] {
  return [
    ...(owners ? [sql`a.owner = any(${owners}::text[])`] : []),
    ...(keys ? [sql`a.key = any(${keys}::text[])`] : []),
    ...(fields
      ? [
          sql`exists (select from aggregate_entries e
            where e.owner = a.owner and e.key = a.key and e.field = any(${fields}::text[]))`,
        ]
      : []),
  ];
}

/** Aggregates with a field that so few have are found by the field; those with others, while going through all by time. */
const FEW = 2_000;

/** The sum of kept totals: of all, of keys, of fields or of both. With several fields it counts some aggregates twice. */
async function sumKept(db: Kysely<Schema>, { keys, fields }: AggregateFilter): Promise<number> {
  const kind = keys && fields ? 'b' : keys ? 'k' : fields ? 'f' : 'a';
  const { rows } = await sql<{ total: number }>`
    select coalesce(sum(total), 0)::bigint as total from aggregate_totals
    where kind = ${kind} and key = any(${keys ?? ['']}::text[]) and field = any(${fields ?? ['']}::text[])`.execute(
    db,
  );
  return rows[0]!.total;
}

/** So many are counted one by one as a matter of course; more of them as a list that takes long. */
const COUNTED_AT_ONCE = 2_000;

/** Of owners no totals are kept. Throws as a list does. */
async function countAggregates(db: Kysely<Schema>, filter: AggregateFilter): Promise<number> {
  if (!filter.owners && (filter.fields?.length ?? 0) < 2) return sumKept(db, filter);
  const count = async (on: Kysely<Schema>, limit: RawBuilder<unknown>) => {
    const { rows } = await sql<{ total: number }>`
      select count(*) as total from (select from aggregates a ${where(conditionsOf(filter))} ${limit}) c`.execute(
      on,
    );
    return rows[0]!.total;
  };
  const total = await count(db, sql`limit ${sql.lit(COUNTED_AT_ONCE + 1)}`);
  return total <= COUNTED_AT_ONCE ? total : withTimeLimit(db, (on) => count(on, sql``));
}

/** The first rows in order of time, as many as the page reaches to. */
function pick(filter: AggregateFilter, page: AggregatePage, few: boolean): RawBuilder<unknown> {
  const { limit, offset } = page;
  const following = afterCursor(page);
  const { owners, keys, fields } = filter;
  const end = sql`${orderOf(page)} limit ${offset + limit}`;
  if (few && fields) {
    // Materialized, or the planner may go through all by time after all.
    return sql`
      with found as materialized (select distinct owner, key from aggregate_entries
        where field = any(${fields}::text[]) ${keys ? sql`and key = any(${keys}::text[])` : sql``})
      select a.* from found join aggregates a using (owner, key) ${where(following)} ${end}`;
  }
  const column = owners && !keys ? 'owner' : keys && !owners ? 'key' : undefined;
  if (!column)
    return sql`select a.* from aggregates a ${where([...conditionsOf(filter), ...following])} ${end}`;
  // One short index scan for each value, merged.
  const rest = conditionsOf({ fields });
  return sql`
    select s.* from unnest(${[...new Set(filter[`${column}s`])]}::text[]) as v (v) cross join lateral (
      select a.* from aggregates a ${where([sql`${sql.ref(`a.${column}`)} = v.v`, ...rest, ...following])} ${end}) s`;
}

/** Larger pages are read under the time limit, as are deep ones. */
const LIMIT_UNTIMED_MAX = 500;

/** Last changed first unless told otherwise; equal times by owner and key. Throws LIST_TOO_COSTLY, and what `hold` throws. */
export async function listAggregates(
  db: Kysely<Schema>,
  filter: AggregateFilter,
  page: AggregatePage,
  hold: Hold = HOLDS_NOTHING,
): Promise<{ aggregates: Aggregate[]; total: number }> {
  const read = async (on: Kysely<Schema>) => {
    const few = !filter.owners && filter.fields !== undefined && (await sumKept(on, filter)) <= FEW;
    const picked = sql`
      select * from (${pick(filter, page, few)}) a ${orderOf(page)} limit ${page.limit} offset ${page.offset}`;
    const aggregates = await putTogether(on, { picked, order: orderOf(page), fields: filter.fields, hold });
    return { aggregates, total: await countAggregates(on, filter) };
  };
  // No index has the order of first changes.
  return filter.fields || page.sortedBy || page.limit > LIMIT_UNTIMED_MAX || isDeep(page)
    ? withTimeLimit(db, read)
    : read(db);
}

/** An owner's aggregates by key: all of them, or those that are named. Throws LIST_TOO_COSTLY, and what `hold` throws. */
export async function readOwned(
  db: Kysely<Schema>,
  owner: string,
  keys: readonly string[] | undefined,
  limit: number,
  hold: Hold,
): Promise<Aggregate[]> {
  const order = sql`order by a."time" desc, a.key`;
  const picked = sql`
    select a.* from aggregates a ${where(conditionsOf({ owners: [owner], keys }))} ${order} limit ${limit}`;
  return putTogether(db, { picked, order, hold });
}

/** What one field of an aggregate is now; undefined where there is none. */
export async function findField(
  db: Kysely<Schema>,
  { owner, key, field }: { readonly owner: string; readonly key: string; readonly field: string },
): Promise<unknown> {
  const row = await db
    .selectFrom('aggregate_entries')
    .select('value')
    .where('owner', '=', owner)
    .where('key', '=', key)
    .where('field', '=', field)
    .executeTakeFirst();
  return row?.value;
}
