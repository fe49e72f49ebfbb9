import type { TimedPage } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';
import { chooseDriver } from './choose.ts';
import { countCombinations, type Driver, narrowDriver, restOf, scansOf, usesOf } from './driver.ts';
import { isEmpty, resolveFilter } from './filter.ts';
import type { MessageFilter } from './properties.ts';
import { allOf, type Condition } from './property.ts';
import { withTimeLimit } from './time-limit.ts';

/** Pages beyond this many rows are read under the time limit. */
const DEPTH_UNLIMITED_MAX = 10_000;

/** What comes after the cursor in the list's order: by time, equal times by item hash ascending. */
function afterCursor({ after, oldestFirst }: TimedPage): Condition[] {
  if (!after) return [];
  const { time, itemHash } = after;
  return oldestFirst
    ? [sql`x."time" >= ${time}::float8`, sql`(x."time" > ${time}::float8 or x.item_hash > ${itemHash})`]
    : [sql`x."time" <= ${time}::float8`, sql`(x."time" < ${time}::float8 or x.item_hash > ${itemHash})`];
}

const directionOf = (page: TimedPage) => (page.oldestFirst ? sql`asc` : sql`desc`);

/** Where the combinations of a page together have more rows than these to offer, it is first found out how old rows may be. */
const SORTED_ROWS_MAX = 2_000;
/** Rows that are looked at for that, as a multiple of the page's depth. */
const SAMPLE = 4;

/** One scan of a driver's index, for the values that `prefix` says of its columns. */
function scan(
  filter: MessageFilter,
  driver: Driver,
  page: TimedPage,
  prefix: readonly Condition[],
): RawBuilder<unknown> {
  const rest = restOf(filter, driver);
  const join =
    rest.message.length > 0
      ? sql`join messages m on m.item_hash = x.item_hash and ${allOf(rest.message)}`
      : sql``;
  return sql`select x."time", x.item_hash from ${sql.table(driver.table)} x ${join}
    where ${allOf([...prefix, ...usesOf(driver), ...rest.own, ...afterCursor(page)])}`;
}

/** (time, item_hash) of the first messages of each combination. */
function pickFirst(
  filter: MessageFilter,
  driver: Driver,
  page: TimedPage,
  rows: number,
  until: readonly Condition[] = [],
): RawBuilder<unknown> {
  const values = driver.prefix.map(
    ({ values: list, type }, index) =>
      sql`unnest(${[...new Set(list)]}::${sql.raw(type)}[]) as ${sql.raw(`v${index}`)} (v)`,
  );
  const prefix = driver.prefix.map(
    ({ column }, index) => sql`${sql.ref(`x.${column}`)} = ${sql.raw(`v${index}.v`)}`,
  );
  const one = sql`${scan(filter, driver, page, [...prefix, ...until])}
    order by x."time" ${directionOf(page)}, x.item_hash limit ${rows}`;
  return values.length === 0
    ? one
    : sql`select s.* from ${sql.join(values, sql` cross join `)} cross join lateral (${one}) s`;
}

/**
 * (time, item_hash) of messages, all that the page and those before it need. A page may reach deep into some of many
 * combinations, but hardly into all of them: the first few rows of each say how old a row of the page can be at most.
 */
function pick(
  filter: MessageFilter,
  driver: Driver,
  page: TimedPage,
  sortedRowsMax: number,
): RawBuilder<unknown> {
  const combinations = countCombinations(driver.prefix);
  const depth = page.offset + page.limit;
  if (combinations <= 1 || combinations * depth <= sortedRowsMax)
    return pickFirst(filter, driver, page, depth);
  // A message with several of the tags is found as often.
  const enough = depth * (driver.table === 'message_tags' ? new Set(filter.tags).size : 1);
  const sample = pickFirst(filter, driver, page, Math.ceil((SAMPLE * enough) / combinations));
  const bound = sql`(select f."time" from (${sample}) f
    order by f."time" ${directionOf(page)} limit 1 offset ${enough - 1})`;
  const until = page.oldestFirst
    ? sql`x."time" <= coalesce(${bound}, 'infinity'::float8)`
    : sql`x."time" >= coalesce(${bound}, '-infinity'::float8)`;
  return pickFirst(filter, driver, page, depth, [until]);
}

function pageQuery(
  filter: MessageFilter,
  driver: Driver,
  page: TimedPage,
  sortedRowsMax: number,
): RawBuilder<StoredMessage> {
  const direction = directionOf(page);
  // A message with two of the tags is found twice.
  const distinct = driver.table === 'message_tags' && (filter.tags?.length ?? 0) > 1 ? sql`distinct` : sql``;
  const picks = scansOf(filter, driver).map((one) => sql`(${pick(filter, one, page, sortedRowsMax)})`);
  return sql<StoredMessage>`
    select m.* from (
      select ${distinct} * from (${sql.join(picks, sql` union all `)}) p
      order by "time" ${direction}, item_hash limit ${page.limit} offset ${page.offset}
    ) p join messages m using (item_hash) order by p."time" ${direction}, p.item_hash`;
}

/** Whether each row that is read is one of the page's, or of the pages before it. */
function isBounded(filter: MessageFilter, driver: Driver, { offset, limit }: TimedPage): boolean {
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
  page: TimedPage,
  sortedRowsMax = SORTED_ROWS_MAX,
): Promise<StoredMessage[]> {
  const filter = await resolveFilter(db, asked);
  if (isEmpty(filter)) return [];
  const chosen = await chooseDriver(db, filter);
  if (!chosen) return [];
  const driver = narrowDriver(chosen);
  const query = pageQuery(filter, driver, page, sortedRowsMax);
  const run = async (on: Kysely<Schema>) => (await query.execute(on)).rows;
  return isBounded(filter, driver, page) ? run(db) : withTimeLimit(db, run);
}
