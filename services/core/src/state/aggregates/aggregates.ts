import { type Page, prepared } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { spelledOwner } from '../../store/messages/spelling.ts';
import type { Schema } from '../../store/schema.ts';
import { isDeep, withTimeLimit } from '../lists/time-limit.ts';
import { ANSWER_BYTES_MAX, HOLDS_NOTHING, type Hold, holdFound, LIGHT_BYTES } from '../lists/weight.ts';

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

/**
 * Aggregates put together. Any number of messages may have added to one, so it is first found out how much they hold.
 * Throws LIST_TOO_COSTLY, and what `hold` throws.
 * @param bytesMax with more they come without contents
 */
async function putTogether(db: Kysely<Schema>, asked: Picked, bytesMax = LIGHT_BYTES): Promise<Aggregate[]> {
  const { picked, order = sql``, fields, hold, begin = sql`` } = asked;
  const { rows } = await sql<Row & { bytes: number }>`${begin}
    with picked as materialized (${picked}),
    weight as materialized (
      select coalesce(sum((select sum(octet_length(e.field) + octet_length(e.value::text)) from ${fieldsOf(fields)})), 0)::bigint as bytes
      from picked a)
    select a.*, bytes, case when bytes <= ${bytesMax}::bigint then (
        select jsonb_object_agg(e.field, e.value) from ${fieldsOf(fields)}) end as content,
      (select ${spelledOwner('m')} from messages m where m.item_hash = a.item_hash) as spelling
    from picked a cross join weight ${order}`.execute(db);
  const bytes = rows[0]?.bytes ?? 0;
  holdFound(db, bytes, hold, 'aggregates');
  return bytes <= bytesMax ? rows.map(aggregateOf) : putTogether(db, asked, ANSWER_BYTES_MAX);
}

/** Throws LIST_TOO_COSTLY, and what `hold` throws. */
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

async function countAggregates(db: Kysely<Schema>, filter: AggregateFilter): Promise<number> {
  if (!filter.owners && (filter.fields?.length ?? 0) < 2) return sumKept(db, filter);
  const { rows } = await sql<{ total: number }>`
    select count(*) as total from aggregates a ${where(conditionsOf(filter))}`.execute(db);
  return rows[0]!.total;
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
