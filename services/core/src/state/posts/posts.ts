import type { TimedPage } from '@skerry/database';
import { AMEND } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';
import { totalMessages } from '../lists/count.ts';
import type { MessageFilter } from '../lists/properties.ts';
import { type Condition, conditionOf } from '../lists/property.ts';
import { withTimeLimit } from '../lists/time-limit.ts';
import { type Hold, readWeighed } from '../lists/weight.ts';
import { SHOWN_COLUMNS } from '../messages/columns.ts';
import {
  type ConfirmedPage,
  confirmedOrder,
  confirmedPage,
  firstConfirmedAt,
} from '../messages/first-confirmation.ts';
import {
  POST_PROPERTIES,
  POST_PROPERTY_NAMES,
  type PostFilter,
  type PostTable,
  postPropertyOf,
} from './properties.ts';

interface Place {
  item_hash: string;
  latest_hash: string;
  updated: number;
}

/** The message that began a post, the one that gives it its content now, and when that was (Unix seconds). */
export interface PostWithMessages {
  readonly original: StoredMessage;
  readonly latest: StoredMessage;
  readonly updated: number;
}

interface Source {
  readonly table: PostTable;
  readonly latest: string;
  readonly own: readonly Condition[];
}

const SOURCES: readonly Source[] = [
  {
    table: 'messages',
    latest: 'item_hash',
    own: [
      sql`x.type = 'POST'`,
      sql`x.status = 'processed'`,
      sql`x.content_type <> 'amend'`,
      sql`not exists (select from amended_posts a where a.item_hash = x.item_hash)`,
    ],
  },
  { table: 'amended_posts', latest: 'latest_hash', own: [] },
];

/** When a post changed last. */
const updatedOf = ({ table }: Source) => sql.ref(`x.${POST_PROPERTIES.from.column[table]}`);

function conditionsOf({ table, own }: Source, filter: PostFilter): Condition[] {
  const asked = POST_PROPERTY_NAMES.flatMap((name) => {
    const value = filter[name];
    const property = postPropertyOf(name);
    return value === undefined ? [] : [conditionOf(property, 'x', property.column[table], value)];
  });
  return [...own, ...asked];
}

function afterCursor(source: Source, { after, oldestFirst }: TimedPage): Condition[] {
  if (!after) return [];
  const updated = updatedOf(source);
  const beyond = oldestFirst ? sql`>` : sql`<`;
  return [
    sql`${updated} ${beyond}= ${after.time}::float8`,
    sql`(${updated} ${beyond} ${after.time}::float8 or x.item_hash > ${after.itemHash})`,
  ];
}

const where = (conditions: readonly Condition[]) =>
  conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;

/** Last changed first unless told otherwise; equal times by item hash. Throws LIST_TOO_COSTLY, and what `hold` throws. */
export async function listPosts(
  db: Kysely<Schema>,
  filter: PostFilter,
  page: TimedPage,
  hold: Hold,
): Promise<PostWithMessages[]> {
  const direction = page.oldestFirst ? sql`asc` : sql`desc`;
  const depth = page.offset + page.limit;
  const scans = SOURCES.map(
    (source) => sql`(
      select x.item_hash, ${sql.ref(`x.${source.latest}`)} as latest_hash, ${updatedOf(source)} as updated
      from ${sql.table(source.table)} x ${where([...conditionsOf(source, filter), ...afterCursor(source, page)])}
      order by ${updatedOf(source)} ${direction}, x.item_hash limit ${depth})`,
  );
  const places = await withTimeLimit(db, (on) =>
    sql<Place>`
    select * from (${sql.join(scans, sql` union all `)}) p
    order by updated ${direction}, item_hash limit ${page.limit} offset ${page.offset}`.execute(on),
  );
  return loadPosts(db, places.rows, hold);
}

/** The messages of the posts at their places. */
async function loadPosts<P extends Place>(
  db: Kysely<Schema>,
  places: readonly P[],
  hold: Hold,
): Promise<(P & PostWithMessages)[]> {
  const hashes = [...new Set(places.flatMap((place) => [place.item_hash, place.latest_hash]))];
  const from = sql`messages m where m.item_hash = any(${hashes}::text[])`;
  const rows = await readWeighed<StoredMessage>(db, { columns: SHOWN_COLUMNS, from, hold });
  const byHash = new Map(rows.map((row) => [row.item_hash, row]));
  return places.flatMap((place) => {
    const [original, latest] = [byHash.get(place.item_hash), byHash.get(place.latest_hash)];
    return original && latest ? [{ ...place, original, latest }] : [];
  });
}

/** In order of the first confirmation of what gives them their content. Throws as listPosts. */
export async function listPostsByConfirmation(
  db: Kysely<Schema>,
  filter: PostFilter,
  page: ConfirmedPage,
  hold: Hold,
): Promise<(PostWithMessages & { readonly confirmed: number | null })[]> {
  const found = SOURCES.map(
    (source) => sql`(
      select x.item_hash, ${sql.ref(`x.${source.latest}`)} as latest_hash, ${updatedOf(source)} as "time"
      from ${sql.table(source.table)} x ${where(conditionsOf(source, filter))})`,
  );
  const rows = sql`select p.*, ${firstConfirmedAt('m')} as confirmed
    from (${sql.join(found, sql` union all `)}) p join messages m on m.item_hash = p.latest_hash`;
  const places = await withTimeLimit(db, (on) =>
    sql<Place & { confirmed: number | null }>`
      select o.item_hash, o.latest_hash, o."time" as updated, nullif(o.confirmed, 'infinity'::float8) as confirmed
      from (${confirmedPage(rows, page)}) o ${confirmedOrder(page)}`.execute(on),
  );
  return loadPosts(db, places.rows, hold);
}

/** The filter of messages that says the same; undefined where totals of messages say nothing of one of the filters. */
function keptOf(filter: PostFilter): MessageFilter | undefined {
  const given = POST_PROPERTY_NAMES.filter((name) => filter[name] !== undefined);
  const kept = given.map((name) => [postPropertyOf(name).total, filter[name]] as const);
  return kept.every(([name]) => name !== undefined) ? Object.fromEntries(kept) : undefined;
}

/** Where the total follows from those of messages: a post is a processed POST that is no amend. */
async function findTotal(db: Kysely<Schema>, filter: PostFilter): Promise<number | undefined> {
  const kept = keptOf(filter);
  if (!kept) return undefined;
  const { contentTypes, ...others } = kept;
  if (contentTypes) {
    if (others.tags) return undefined;
    return totalMessages(db, { ...others, contentTypes: contentTypes.filter((type) => type !== AMEND) });
  }
  if (Object.keys(others).length > 1) return undefined;
  const [all, amends] = await Promise.all([
    totalMessages(db, { ...others, types: ['POST'] }),
    totalMessages(db, { ...others, contentTypes: [AMEND] }),
  ]);
  return all - amends;
}

/** How many posts fit, exactly. Throws LIST_TOO_COSTLY. */
export async function totalPosts(db: Kysely<Schema>, filter: PostFilter): Promise<number> {
  const found = await findTotal(db, filter);
  if (found !== undefined) return found;
  const counts = SOURCES.map(
    (source) =>
      sql`(select count(*) from ${sql.table(source.table)} x ${where(conditionsOf(source, filter))})`,
  );
  return withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ total: number }>`select (${sql.join(counts, sql` + `)}) as total`.execute(
      on,
    );
    return rows[0]!.total;
  });
}
