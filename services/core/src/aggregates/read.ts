import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Page } from '../db/page.ts';
import type { Schema } from '../db/schema.ts';

export interface Aggregate {
  readonly owner: string;
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
  /** The last aggregate of the page before. */
  readonly after?: { readonly time: number; readonly owner: string; readonly key: string } | undefined;
}

interface Row {
  owner: string;
  key: string;
  created: number;
  time: number;
  item_hash: string;
  content: Record<string, unknown> | null;
}

const aggregateOf = (row: Row): Aggregate => ({
  owner: row.owner,
  key: row.key,
  content: row.content ?? {},
  created: row.created,
  time: row.time,
  itemHash: row.item_hash,
});

/** The fields of the aggregate `a`, put together. */
const contentOf = (fields: readonly string[] | undefined) => sql`(
  select jsonb_object_agg(e.field, e.value) from aggregate_entries e
  where e.owner = a.owner and e.key = a.key ${fields ? sql`and e.field = any(${fields}::text[])` : sql``})`;

export async function findAggregate(
  db: Kysely<Schema>,
  owner: string,
  key: string,
): Promise<Aggregate | undefined> {
  const { rows } = await sql<Row>`
    select a.*, ${contentOf(undefined)} as content from aggregates a where a.owner = ${owner} and a.key = ${key}`.execute(
    db,
  );
  return rows[0] && aggregateOf(rows[0]);
}

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

const where = (conditions: readonly RawBuilder<unknown>[]) =>
  conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;

/** Last changed first; equal times by owner and key. */
export async function listAggregates(
  db: Kysely<Schema>,
  filter: AggregateFilter,
  page: AggregatePage,
): Promise<{ aggregates: Aggregate[]; total: number }> {
  const conditions = conditionsOf(filter);
  const { after } = page;
  const following = after
    ? [
        sql`a."time" <= ${after.time}::float8`,
        sql`(a."time" < ${after.time}::float8 or (a.owner, a.key) > (${after.owner}, ${after.key}))`,
      ]
    : [];
  const { rows } = await sql<Row>`
    select a.*, ${contentOf(filter.fields)} as content from (
      select * from aggregates a ${where([...conditions, ...following])}
      order by a."time" desc, a.owner, a.key limit ${page.limit} offset ${page.offset}) a
    order by a."time" desc, a.owner, a.key`.execute(db);
  const counted = await sql<{ total: number }>`
    select count(*) as total from aggregates a ${where(conditions)}`.execute(db);
  return { aggregates: rows.map(aggregateOf), total: counted.rows[0]!.total };
}

/** An owner's aggregates by key: all of them, or those that are named. */
export async function readOwned(
  db: Kysely<Schema>,
  owner: string,
  keys: readonly string[] | undefined,
  limit: number,
): Promise<Aggregate[]> {
  const { rows } = await sql<Row>`
    select a.*, ${contentOf(undefined)} as content from aggregates a
    ${where(conditionsOf({ owners: [owner], keys }))} order by a."time" desc, a.key limit ${limit}`.execute(
    db,
  );
  return rows.map(aggregateOf);
}
