import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { MESSAGE_TYPES } from '../messages/contents.ts';
import type { StoredMessage } from '../messages/stored.ts';
import { labelOf, type Property } from './labels.ts';
import { findTotal } from './totals.ts';

/** Every given property must fit, by any of its values. */
export interface MessageFilter {
  readonly hashes?: readonly string[] | undefined;
  /** Senders. */
  readonly addresses?: readonly string[] | undefined;
  readonly owners?: readonly string[] | undefined;
  readonly channels?: readonly string[] | undefined;
  readonly chains?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly contentTypes?: readonly string[] | undefined;
  /** What the messages speak of (messages/accepted.ts). */
  readonly subjects?: readonly string[] | undefined;
  /** Numbers of shapes (lists/shapes.ts). */
  readonly shapes?: readonly number[] | undefined;
  /** Unix seconds, inclusive. */
  readonly from?: number | undefined;
  /** Unix seconds, exclusive. */
  readonly to?: number | undefined;
}

/** The last message of a page; the next page begins after it. */
export interface MessageCursor {
  readonly time: number;
  readonly itemHash: string;
}

export interface MessagePage {
  readonly limit: number;
  readonly offset: number;
  readonly after?: MessageCursor | undefined;
  readonly oldestFirst?: boolean | undefined;
}

type Condition = RawBuilder<unknown>;
const and = (conditions: readonly Condition[]) => sql.join(conditions, sql` and `);
const anyOf = (column: string, values: readonly unknown[], type = 'text') =>
  sql`${sql.ref(column)} = any(${values}::${sql.raw(type)}[])`;

/** Shapes that are looked up one by one; more of them are cheaper to filter by. */
const MERGED_SHAPES_MAX = 32;

/**
 * One short index scan for each combination of values, merged by time. An index whose first columns are those of the
 * combination gives its messages in order of time, so each scan ends after a page, however many messages fit.
 */
interface Driver {
  readonly table: 'messages' | 'message_tags';
  /** Column -> values; in the index's order. */
  readonly prefix: readonly (readonly [column: string, values: readonly unknown[], type?: string])[];
}

/** The index that narrows the most. `type` stands in the middle of most of them: without a filter, all types are merged. */
function driverOf(filter: MessageFilter): Driver {
  const types = ['type', filter.types ?? MESSAGE_TYPES] as const;
  const { tags, addresses, channels, contentTypes, shapes, subjects } = filter;
  if (tags) {
    const second = addresses
      ? [['sender', addresses] as const]
      : channels
        ? [['channel', channels] as const]
        : [];
    return { table: 'message_tags', prefix: [['tag', tags], ...second, types] };
  }
  const table = 'messages';
  if (subjects) return { table, prefix: [['subject', subjects], types] };
  if (addresses && channels) return { table, prefix: [['sender', addresses], ['channel', channels], types] };
  if (addresses) return { table, prefix: [['sender', addresses], types] };
  if (contentTypes) return { table, prefix: [['content_type', contentTypes]] };
  if (channels) return { table, prefix: [['channel', channels], types] };
  if (shapes && shapes.length <= MERGED_SHAPES_MAX) return { table, prefix: [['shape', shapes, 'integer']] };
  if (filter.types) return { table, prefix: [types] };
  return { table, prefix: [] };
}

const COLUMNS = [
  ['addresses', 'sender'],
  ['owners', 'owner'],
  ['channels', 'channel'],
  ['chains', 'chain'],
  ['types', 'type'],
  ['contentTypes', 'content_type'],
  ['subjects', 'subject'],
] as const;
const TAG_COLUMNS: readonly string[] = ['sender', 'channel', 'type', 'time', 'item_hash'];

/** The conditions that the index does not answer, on `m` (messages) or `g` (message_tags). */
function restOf(filter: MessageFilter, driver: Driver): { own: Condition[]; message: Condition[] } {
  const own: Condition[] = [];
  const message: Condition[] = [];
  const put = (column: string, condition: (table: string) => Condition) =>
    driver.table === 'messages' || TAG_COLUMNS.includes(column)
      ? own.push(condition('x'))
      : message.push(condition('m'));
  const answered = new Set(driver.prefix.map(([column]) => column));
  for (const [name, column] of COLUMNS) {
    const values = filter[name];
    if (values && !answered.has(column)) put(column, (table) => anyOf(`${table}.${column}`, values));
  }
  const { shapes, from, to, hashes } = filter;
  if (shapes && !answered.has('shape')) put('shape', (table) => anyOf(`${table}.shape`, shapes, 'integer'));
  if (hashes) put('item_hash', (table) => anyOf(`${table}.item_hash`, hashes));
  if (from !== undefined) put('time', (table) => sql`${sql.ref(`${table}.time`)} >= ${from}::float8`);
  if (to !== undefined) put('time', (table) => sql`${sql.ref(`${table}.time`)} < ${to}::float8`);
  if (driver.table === 'messages') own.push(sql`x.status = 'processed'`);
  return { own, message };
}

/** What comes after the cursor in the list's order: by time, equal times by item hash ascending. */
function afterCursor({ after, oldestFirst }: MessagePage): Condition[] {
  if (!after) return [];
  const { time, itemHash } = after;
  return oldestFirst
    ? [sql`x."time" >= ${time}::float8`, sql`(x."time" > ${time}::float8 or x.item_hash > ${itemHash})`]
    : [sql`x."time" <= ${time}::float8`, sql`(x."time" < ${time}::float8 or x.item_hash > ${itemHash})`];
}

function pageQuery(filter: MessageFilter, page: MessagePage): RawBuilder<StoredMessage> {
  const driver = driverOf(filter);
  const rest = restOf(filter, driver);
  const direction = page.oldestFirst ? sql`asc` : sql`desc`;
  const order = sql`"time" ${direction}, item_hash`;
  const depth = page.offset + page.limit;
  const values = driver.prefix.map(
    ([, list, type], index) =>
      sql`unnest(${[...new Set(list)]}::${sql.raw(type ?? 'text')}[]) as ${sql.raw(`v${index}`)} (v)`,
  );
  const prefix = driver.prefix.map(
    ([column], index) => sql`${sql.ref(`x.${column}`)} = ${sql.raw(`v${index}.v`)}`,
  );
  const join =
    rest.message.length > 0
      ? sql`join messages m on m.item_hash = x.item_hash and ${and(rest.message)}`
      : sql``;
  const own = [...prefix, ...rest.own, ...afterCursor(page)];
  const scan = sql`
    select x."time", x.item_hash from ${sql.table(driver.table)} x ${join}
    ${own.length > 0 ? sql`where ${and(own)}` : sql``}
    order by x."time" ${direction}, x.item_hash limit ${depth}`;
  const picked =
    values.length === 0
      ? scan
      : sql`select s.* from ${sql.join(values, sql` cross join `)} cross join lateral (${scan}) s`;
  // A message with two of the tags is found twice.
  const distinct = (filter.tags?.length ?? 0) > 1 ? sql`distinct` : sql``;
  return sql<StoredMessage>`
    select m.* from (select ${distinct} * from (${picked}) p order by ${order} limit ${page.limit} offset ${page.offset}) p
    join messages m using (item_hash) order by p."time" ${direction}, p.item_hash`;
}

/** The properties whose totals are kept; undefined where another one is asked for. */
function keptProperties(filter: MessageFilter): string[][] | undefined {
  const { hashes, owners, chains, subjects, from, to, tags } = filter;
  if (hashes || owners || chains || subjects || from !== undefined || to !== undefined) return undefined;
  // A message may have several tags, so their totals overlap.
  if (tags && tags.length > 1) return undefined;
  const given: [Property, readonly (string | number)[] | undefined][] = [
    ['s', filter.addresses],
    ['t', filter.types],
    ['c', filter.channels],
    ['p', filter.contentTypes],
    ['g', tags],
    ['k', filter.shapes],
  ];
  return given.flatMap(([property, values]) =>
    values ? [[...new Set(values)].map((value) => labelOf(property, value))] : [],
  );
}

async function countMessages(db: Kysely<Schema>, filter: MessageFilter): Promise<number> {
  const driver = driverOf(filter);
  const rest = restOf(filter, driver);
  const own = [
    ...driver.prefix.map(([column, values, type]) => anyOf(`x.${column}`, values, type)),
    ...rest.own,
  ];
  const join =
    rest.message.length > 0
      ? sql`join messages m on m.item_hash = x.item_hash and ${and(rest.message)}`
      : sql``;
  const counted = driver.table === 'message_tags' ? sql`count(distinct x.item_hash)` : sql`count(*)`;
  const { rows } = await sql<{ total: number }>`
    select ${counted} as total from ${sql.table(driver.table)} x ${join} where ${and(own)}`.execute(db);
  return rows[0]!.total;
}

/** Processed messages, newest first unless told otherwise; equal times by item hash. */
export async function listMessages(
  db: Kysely<Schema>,
  filter: MessageFilter,
  page: MessagePage,
): Promise<StoredMessage[]> {
  if (isEmpty(filter)) return [];
  return (await pageQuery(filter, page).execute(db)).rows;
}

/** How many messages fit, exactly. */
export async function totalMessages(db: Kysely<Schema>, filter: MessageFilter): Promise<number> {
  if (isEmpty(filter)) return 0;
  const properties = keptProperties(filter);
  const kept = properties && (await findTotal(db, properties));
  return kept ?? countMessages(db, filter);
}

/** A property of which no value is possible, such as a path that no content has. */
const isEmpty = (filter: MessageFilter) =>
  Object.values(filter).some((values) => Array.isArray(values) && values.length === 0);

/** The shapes that have one of the paths. */
export async function findShapes(db: Kysely<Schema>, paths: readonly string[]): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`select id from shapes where paths && ${paths}::text[]`.execute(
    db,
  );
  return rows.map((row) => row.id);
}
