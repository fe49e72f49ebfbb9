import { AMEND } from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { totalMessages } from '../lists/count.ts';
import { withTimeLimit } from '../lists/time-limit.ts';
import type { StoredMessage } from '../messages/stored.ts';

export interface PostFilter {
  /** Of the original. */
  readonly hashes?: readonly string[] | undefined;
  readonly owners?: readonly string[] | undefined;
  readonly refs?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly channels?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  /** Unix seconds of the last change: inclusive, exclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export interface PostPage {
  readonly limit: number;
  readonly offset: number;
  /** The last post of the page before. */
  readonly after?: { readonly time: number; readonly itemHash: string } | undefined;
  readonly oldestFirst?: boolean | undefined;
}

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

type Condition = RawBuilder<unknown>;

/** A place that posts are found in: column names differ, what is asked is the same. */
interface Source {
  readonly table: 'messages' | 'amended_posts';
  readonly type: string;
  readonly ref: string;
  readonly updated: string;
  readonly latest: string;
  readonly own: readonly Condition[];
}

/** Posts that nobody amended are nowhere but among the messages: so a post costs nothing more to keep. */
const SOURCES: readonly Source[] = [
  {
    table: 'messages',
    type: 'content_type',
    ref: 'subject',
    updated: 'time',
    latest: 'item_hash',
    own: [
      sql`x.type = 'POST'`,
      sql`x.status = 'processed'`,
      sql`x.content_type <> 'amend'`,
      sql`not exists (select from amended_posts a where a.item_hash = x.item_hash)`,
    ],
  },
  { table: 'amended_posts', type: 'type', ref: 'ref', updated: 'updated', latest: 'latest_hash', own: [] },
];

function conditionsOf(source: Source, filter: PostFilter): Condition[] {
  const { tags, from, to } = filter;
  const columns = [
    ['item_hash', filter.hashes],
    ['owner', filter.owners],
    [source.ref, filter.refs],
    [source.type, filter.types],
    ['channel', filter.channels],
  ] as const;
  const updated = sql.ref(`x.${source.updated}`);
  return [
    ...source.own,
    ...columns.flatMap(([column, values]) =>
      values ? [sql`${sql.ref(`x.${column}`)} = any(${values}::text[])`] : [],
    ),
    ...(tags ? [sql`x.tags && ${tags}::text[]`] : []),
    ...(from === undefined ? [] : [sql`${updated} >= ${from}::float8`]),
    ...(to === undefined ? [] : [sql`${updated} < ${to}::float8`]),
  ];
}

function afterCursor(source: Source, { after, oldestFirst }: PostPage): Condition[] {
  if (!after) return [];
  const updated = sql.ref(`x.${source.updated}`);
  const beyond = oldestFirst ? sql`>` : sql`<`;
  return [
    sql`${updated} ${beyond}= ${after.time}::float8`,
    sql`(${updated} ${beyond} ${after.time}::float8 or x.item_hash > ${after.itemHash})`,
  ];
}

const where = (conditions: readonly Condition[]) =>
  conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;

/** Last changed first unless told otherwise; equal times by item hash. Throws LIST_TOO_COSTLY. */
export async function listPosts(
  db: Kysely<Schema>,
  filter: PostFilter,
  page: PostPage,
): Promise<PostWithMessages[]> {
  const direction = page.oldestFirst ? sql`asc` : sql`desc`;
  const depth = page.offset + page.limit;
  const scans = SOURCES.map(
    (source) => sql`(
      select x.item_hash, ${sql.ref(`x.${source.latest}`)} as latest_hash, ${sql.ref(`x.${source.updated}`)} as updated
      from ${sql.table(source.table)} x ${where([...conditionsOf(source, filter), ...afterCursor(source, page)])}
      order by ${sql.ref(`x.${source.updated}`)} ${direction}, x.item_hash limit ${depth})`,
  );
  const places = await withTimeLimit(db, (on) =>
    sql<Place>`
    select * from (${sql.join(scans, sql` union all `)}) p
    order by updated ${direction}, item_hash limit ${page.limit} offset ${page.offset}`.execute(on),
  );
  const hashes = [...new Set(places.rows.flatMap((place) => [place.item_hash, place.latest_hash]))];
  const { rows } = await sql<StoredMessage>`
    select * from messages where item_hash = any(${hashes}::text[])`.execute(db);
  const byHash = new Map(rows.map((row) => [row.item_hash, row]));
  return places.rows.flatMap(({ item_hash, latest_hash, updated }) => {
    const [original, latest] = [byHash.get(item_hash), byHash.get(latest_hash)];
    return original && latest ? [{ original, latest, updated }] : [];
  });
}

/** Where the total follows from those of messages: a post is a processed POST that is no amend. */
async function findTotal(db: Kysely<Schema>, filter: PostFilter): Promise<number | undefined> {
  const { hashes, owners, refs, from, to, types, channels, tags } = filter;
  if (hashes || owners || refs || from !== undefined || to !== undefined) return undefined;
  if (types) {
    const contentTypes = types.filter((type) => type !== AMEND);
    return tags ? undefined : totalMessages(db, { channels, contentTypes });
  }
  if (channels && tags) return undefined;
  const [all, amends] = await Promise.all([
    totalMessages(db, { channels, tags, types: ['POST'] }),
    totalMessages(db, { channels, tags, contentTypes: [AMEND] }),
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
