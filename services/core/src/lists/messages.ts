import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { StoredMessage } from '../messages/stored.ts';
import { chooseDriver } from './choose.ts';
import { type Driver, narrowDriver, restOf, usesOf } from './driver.ts';
import { allOf, type Condition, isEmpty, type MessageFilter, resolveFilter } from './filter.ts';
import { withTimeLimit } from './time-limit.ts';

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

/** Pages beyond this many rows are read under the time limit. */
const DEPTH_UNLIMITED_MAX = 10_000;

/** What comes after the cursor in the list's order: by time, equal times by item hash ascending. */
function afterCursor({ after, oldestFirst }: MessagePage): Condition[] {
  if (!after) return [];
  const { time, itemHash } = after;
  return oldestFirst
    ? [sql`x."time" >= ${time}::float8`, sql`(x."time" > ${time}::float8 or x.item_hash > ${itemHash})`]
    : [sql`x."time" <= ${time}::float8`, sql`(x."time" < ${time}::float8 or x.item_hash > ${itemHash})`];
}

const directionOf = (page: MessagePage) => (page.oldestFirst ? sql`asc` : sql`desc`);

/** (time, item_hash) of the first messages of each combination, as deep as the page reaches. */
function pick(filter: MessageFilter, driver: Driver, page: MessagePage): RawBuilder<unknown> {
  const rest = restOf(filter, driver);
  const values = driver.prefix.map(
    ([, list, type], index) =>
      sql`unnest(${[...new Set(list)]}::${sql.raw(type ?? 'text')}[]) as ${sql.raw(`v${index}`)} (v)`,
  );
  const prefix = driver.prefix.map(
    ([column], index) => sql`${sql.ref(`x.${column}`)} = ${sql.raw(`v${index}.v`)}`,
  );
  const join =
    rest.message.length > 0
      ? sql`join messages m on m.item_hash = x.item_hash and ${allOf(rest.message)}`
      : sql``;
  const own = [...prefix, ...usesOf(driver), ...rest.own, ...afterCursor(page)];
  const scan = sql`
    select x."time", x.item_hash from ${sql.table(driver.table)} x ${join}
    where ${allOf(own)}
    order by x."time" ${directionOf(page)}, x.item_hash limit ${page.offset + page.limit}`;
  return values.length === 0
    ? scan
    : sql`select s.* from ${sql.join(values, sql` cross join `)} cross join lateral (${scan}) s`;
}

export function pageQuery(
  filter: MessageFilter,
  driver: Driver,
  page: MessagePage,
): RawBuilder<StoredMessage> {
  const direction = directionOf(page);
  const narrow = narrowDriver(driver, page.offset + page.limit);
  // A message with two of the tags is found twice.
  const distinct = narrow.table === 'message_tags' && (filter.tags?.length ?? 0) > 1 ? sql`distinct` : sql``;
  return sql<StoredMessage>`
    select m.* from (
      select ${distinct} * from (${pick(filter, narrow, page)}) p
      order by "time" ${direction}, item_hash limit ${page.limit} offset ${page.offset}
    ) p join messages m using (item_hash) order by p."time" ${direction}, p.item_hash`;
}

/** Whether each row that is read is one of the page's, or of the pages before it. */
function isBounded(filter: MessageFilter, driver: Driver, { offset, limit }: MessagePage): boolean {
  const { own, message } = restOf({ ...filter, from: undefined, to: undefined }, driver);
  return (
    filter.hashes !== undefined ||
    (own.length === 0 && message.length === 0 && offset + limit <= DEPTH_UNLIMITED_MAX)
  );
}

/** Processed messages, newest first unless told otherwise; equal times by item hash. Throws LIST_TOO_COSTLY. */
export async function listMessages(
  db: Kysely<Schema>,
  asked: MessageFilter,
  page: MessagePage,
): Promise<StoredMessage[]> {
  const filter = await resolveFilter(db, asked);
  if (isEmpty(filter)) return [];
  const driver = await chooseDriver(db, filter);
  if (!driver) return [];
  const query = pageQuery(filter, driver, page);
  const run = async (on: Kysely<Schema>) => (await query.execute(on)).rows;
  return isBounded(filter, narrowDriver(driver, page.offset + page.limit), page)
    ? run(db)
    : withTimeLimit(db, run);
}
