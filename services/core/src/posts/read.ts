import { AMEND } from '@skerry/protocol';
import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely';
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

/** A post, the message that began it, and the one that gives it its content now. */
export interface PostWithMessages {
  readonly post: Selectable<Schema['posts']>;
  readonly original: StoredMessage;
  readonly latest: StoredMessage;
}

const COLUMNS = [
  ['hashes', 'item_hash'],
  ['owners', 'owner'],
  ['refs', 'ref'],
  ['types', 'type'],
  ['channels', 'channel'],
] as const;

function conditionsOf(filter: PostFilter): RawBuilder<unknown>[] {
  const { tags, from, to } = filter;
  return [
    ...COLUMNS.flatMap(([name, column]) =>
      filter[name] ? [sql`${sql.ref(column)} = any(${filter[name]}::text[])`] : [],
    ),
    ...(tags ? [sql`tags && ${tags}::text[]`] : []),
    ...(from === undefined ? [] : [sql`updated >= ${from}::float8`]),
    ...(to === undefined ? [] : [sql`updated < ${to}::float8`]),
  ];
}

const where = (conditions: readonly RawBuilder<unknown>[]) =>
  conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;

/** Last changed first unless told otherwise; equal times by item hash. Throws LIST_TOO_COSTLY. */
export async function listPosts(
  db: Kysely<Schema>,
  filter: PostFilter,
  page: PostPage,
): Promise<PostWithMessages[]> {
  const direction = page.oldestFirst ? sql`asc` : sql`desc`;
  const beyond = page.oldestFirst ? sql`>` : sql`<`;
  const { after } = page;
  const following = after
    ? [
        sql`updated ${beyond}= ${after.time}::float8`,
        sql`(updated ${beyond} ${after.time}::float8 or item_hash > ${after.itemHash})`,
      ]
    : [];
  const posts = await withTimeLimit(db, (on) =>
    sql<Selectable<Schema['posts']>>`
      select * from posts ${where([...conditionsOf(filter), ...following])}
      order by updated ${direction}, item_hash limit ${page.limit} offset ${page.offset}`.execute(on),
  );
  const hashes = [...new Set(posts.rows.flatMap((post) => [post.item_hash, post.latest_hash]))];
  const { rows } = await sql<StoredMessage>`
    select * from messages where item_hash = any(${hashes}::text[])`.execute(db);
  const byHash = new Map(rows.map((row) => [row.item_hash, row]));
  return posts.rows.flatMap((post) => {
    const [original, latest] = [byHash.get(post.item_hash), byHash.get(post.latest_hash)];
    return original && latest ? [{ post, original, latest }] : [];
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
  return withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ total: number }>`
      select count(*) as total from posts ${where(conditionsOf(filter))}`.execute(on);
    return rows[0]!.total;
  });
}
