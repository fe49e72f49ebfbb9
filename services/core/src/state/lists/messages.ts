import type { TimedPage } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';
import { SHOWN_COLUMNS } from '../messages/columns.ts';
import { chooseScans } from './choose.ts';
import {
  countCombinations,
  type Driver,
  isRepeating,
  joinOf,
  narrowDriver,
  restOf,
  usesOf,
} from './driver.ts';
import { isEmpty, resolveFilter } from './filter.ts';
import type { MessageFilter } from './properties.ts';
import { allOf, type Condition } from './property.ts';
import { isDeep, withTimeLimit } from './time-limit.ts';
import { HOLDS_NOTHING, type Hold, readWeighed } from './weight.ts';

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
  return sql`select x."time", x.item_hash from ${sql.table(driver.table)} x ${joinOf(rest.message)}
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

/** The hashes of a page, in its order. */
function placesOf(
  filter: MessageFilter,
  scans: readonly Driver[],
  page: TimedPage,
  sortedRowsMax: number,
): RawBuilder<unknown> {
  // A message with two of the tags is found twice.
  const distinct = scans.some((one) => isRepeating(filter, one)) ? sql`distinct` : sql``;
  const picks = scans.map((one) => sql`(${pick(filter, one, page, sortedRowsMax)})`);
  return sql`select ${distinct} * from (${sql.join(picks, sql` union all `)}) p
    order by "time" ${directionOf(page)}, item_hash limit ${page.limit} offset ${page.offset}`;
}

/** Whether each row that is read is one of the page's, or of the pages before it. */
function isBounded(filter: MessageFilter, scans: readonly Driver[], page: TimedPage): boolean {
  if (filter.hashes !== undefined) return true;
  const undated = { ...filter, from: undefined, to: undefined };
  const leavesNothing = (driver: Driver) => {
    const { own, message } = restOf(undated, driver);
    return own.length === 0 && message.length === 0;
  };
  return !isDeep(page) && scans.every(leavesNothing);
}

/** How messages are picked for a page: what runs a query over them, `m` being the message and `p` its place. */
async function pickPage<T>(
  db: Kysely<Schema>,
  asked: MessageFilter,
  page: TimedPage,
  sortedRowsMax: number,
  read: (picked: RawBuilder<unknown>, on: Kysely<Schema>) => Promise<T[]>,
): Promise<T[]> {
  const filter = await resolveFilter(db, asked);
  if (isEmpty(filter)) return [];
  const scans = (await chooseScans(db, filter)).map(narrowDriver);
  if (scans.length === 0) return [];
  const places = placesOf(filter, scans, page, sortedRowsMax);
  const run = (on: Kysely<Schema>) => read(sql`(${places}) p join messages m using (item_hash)`, on);
  return isBounded(filter, scans, page) ? run(db) : withTimeLimit(db, run);
}

const orderOf = (page: TimedPage) => sql`order by p."time" ${directionOf(page)}, p.item_hash`;

/** Processed messages, newest first unless told otherwise; equal times by item hash. Throws LIST_TOO_COSTLY, and what `hold` throws. */
export const listMessages = (
  db: Kysely<Schema>,
  asked: MessageFilter,
  page: TimedPage,
  hold: Hold = HOLDS_NOTHING,
  sortedRowsMax = SORTED_ROWS_MAX,
): Promise<StoredMessage[]> =>
  pickPage(db, asked, page, sortedRowsMax, (from, on) =>
    readWeighed<StoredMessage>(on, { columns: SHOWN_COLUMNS, from, order: orderOf(page), hold }),
  );

/** What became of a message, without the message. */
type StatusRow = Pick<StoredMessage, 'item_hash' | 'status' | 'received_at' | 'time'>;

/** The same, of each message only what became of it. */
export const listStatuses = (
  db: Kysely<Schema>,
  asked: MessageFilter,
  page: TimedPage,
): Promise<StatusRow[]> =>
  pickPage(db, asked, page, SORTED_ROWS_MAX, async (picked, on) => {
    const columns = sql`m.item_hash, m.status, m.received_at, m."time"`;
    return (await sql<StatusRow>`select ${columns} from ${picked} ${orderOf(page)}`.execute(on)).rows;
  });
