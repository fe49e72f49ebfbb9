import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, METRICS_POST_TYPES, parseMessageHash } from '@skerry/protocol';
import Type from 'typebox';
import { totalMessages } from '../lists/count.ts';
import { type MessageFilter, resolveFilter } from '../lists/filter.ts';
import { listMessages } from '../lists/messages.ts';
import { loadConfirmations } from '../messages/confirmations.ts';
import { networkViewOf } from '../messages/view.ts';
import { listPosts, type PostFilter, totalPosts } from '../posts/read.ts';
import { postViewOf } from '../posts/view.ts';
import { placeCursor } from './cursor.ts';
import { reads } from './declare.ts';
import { normalizeAddress, parseListFilter, parseTypes } from './filters.ts';
import { nextCursorOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';

const PAGE_MAX = 1_000_000;
const PAGE_SIZE_DEFAULT = 20;
const PAGE_SIZE_MAX = 500;

const list = (description: string) =>
  Type.Optional(Type.String({ description: `${description}, comma-separated` }));
const date = (description: string) =>
  Type.Optional(Type.Number({ minimum: 0, description: `Unix seconds, ${description}` }));

/** Parameters of the lists of deployed nodes; those that are not known here are left alone, as they do. */
const common = {
  addresses: list('addresses'),
  hashes: list('item hashes'),
  refs: list('what the messages refer to'),
  channels: list('channels'),
  tags: list('tags'),
  startDate: date('inclusive'),
  endDate: date('exclusive'),
  sortOrder: Type.Integer({ enum: [-1, 1], default: -1, description: '-1: newest first' }),
  pagination: Type.Integer({
    minimum: 1,
    maximum: PAGE_SIZE_MAX,
    default: PAGE_SIZE_DEFAULT,
    description: 'page size',
  }),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.pageSizeMax,
      description: 'page size, as in the other lists',
    }),
  ),
  page: Type.Integer({ minimum: 1, maximum: PAGE_MAX, default: 1 }),
  cursor: Type.Optional(
    Type.String({
      maxLength: 1024,
      description: '`next_cursor` of the page before; empty for the first page',
    }),
  ),
};
const MessagesQuery = Type.Object({
  ...common,
  owners: list('addresses on whose behalf the messages are'),
  chains: list('chain codes'),
  msgType: list('message types; an older name of msgTypes'),
  msgTypes: list('message types'),
  contentTypes: list('types of POST contents'),
  content_types: list('the same'),
});
const PostsQuery = Type.Object({ ...common, types: list('types of POST contents') });

type CommonQuery = Type.Static<typeof PostsQuery>;

/** Two names of one thing (docs/decisions.md 11): either finds both. */
const METRICS_TYPES: readonly string[] = METRICS_POST_TYPES;
const withSecondNames = (types: readonly string[] | undefined) =>
  types?.some((type) => METRICS_TYPES.includes(type)) ? [...new Set([...types, ...METRICS_TYPES])] : types;

function checkDates({ startDate, endDate }: CommonQuery): void {
  if (startDate !== undefined && endDate !== undefined && endDate < startDate)
    throw new AppError('INVALID_PARAMETERS', 'query.endDate is before query.startDate');
}

/** The page size has a name in either form. */
const sizeOf = ({ limit, pagination }: CommonQuery) => limit ?? pagination;

function pageOf(query: CommonQuery) {
  const after = placeCursor.read(query.cursor);
  return {
    limit: sizeOf(query),
    offset: query.cursor === undefined ? (query.page - 1) * sizeOf(query) : 0,
    after: after && { time: after.t, itemHash: after.h },
    oldestFirst: query.sortOrder === 1,
  };
}

/** Totals by page, or a cursor alone: as deployed nodes answer. */
const paginationFields = async (query: CommonQuery, item: string, total: () => Promise<number>) => ({
  pagination_per_page: sizeOf(query),
  pagination_item: item,
  ...(query.cursor === undefined ? { pagination_page: query.page, pagination_total: await total() } : {}),
});

const paginationSchema = {
  pagination_per_page: Type.Integer(),
  pagination_item: Type.String(),
  pagination_page: Type.Optional(Type.Integer()),
  pagination_total: Type.Optional(Type.Integer()),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
};

const hashesOf = (query: CommonQuery) =>
  parseListFilter('hashes', query.hashes)?.map((text) => parseMessageHash(text).hash);

function messageFilterOf(query: Type.Static<typeof MessagesQuery>): MessageFilter {
  checkDates(query);
  const contentTypes =
    parseListFilter('contentTypes', query.contentTypes) ??
    parseListFilter('content_types', query.content_types);
  return {
    hashes: hashesOf(query),
    addresses: parseListFilter('addresses', query.addresses)?.map(normalizeAddress),
    owners: parseListFilter('owners', query.owners)?.map(normalizeAddress),
    channels: parseListFilter('channels', query.channels),
    chains: parseListFilter('chains', query.chains),
    tags: parseListFilter('tags', query.tags),
    subjects: parseListFilter('refs', query.refs),
    types: parseTypes('msgTypes', query.msgTypes) ?? parseTypes('msgType', query.msgType),
    contentTypes: withSecondNames(contentTypes),
    from: query.startDate,
    to: query.endDate,
  };
}

function postFilterOf(query: CommonQuery): PostFilter {
  checkDates(query);
  return {
    hashes: hashesOf(query),
    owners: parseListFilter('addresses', query.addresses)?.map(normalizeAddress),
    refs: parseListFilter('refs', query.refs),
    types: withSecondNames(parseListFilter('types', query.types)),
    channels: parseListFilter('channels', query.channels),
    tags: parseListFilter('tags', query.tags),
    from: query.startDate,
    to: query.endDate,
  };
}

/** Lists in the form of deployed nodes (docs/decisions.md 12), which clients and measurement programs read. */
export async function networkListRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  app.get(
    '/messages.json',
    {
      schema: {
        summary: 'Messages in force, in the network form',
        querystring: MessagesQuery,
        response: { 200: Type.Object({ messages: Type.Array(Type.Unknown()), ...paginationSchema }) },
      },
      config: reads('INVALID_HASH', 'INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    },
    async ({ query }) => {
      const filter = await resolveFilter(rooms.db, messageFilterOf(query));
      const rows = await listMessages(rooms.db, filter, pageOf(query));
      const confirmations = await loadConfirmations(rooms.db, rows);
      return {
        messages: rows.map((row) => networkViewOf(row, confirmations)),
        ...(await paginationFields(query, 'messages', () => totalMessages(rooms.db, filter))),
        next_cursor: nextCursorOf(rows, sizeOf(query), (last) =>
          placeCursor.write({ t: last.time, h: last.item_hash }),
        ),
      };
    },
  );

  app.get(
    '/posts.json',
    {
      schema: {
        summary: 'Posts with the latest of their amends, last changed first',
        querystring: PostsQuery,
        response: { 200: Type.Object({ posts: Type.Array(Type.Unknown()), ...paginationSchema }) },
      },
      config: reads('INVALID_HASH', 'INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    },
    async ({ query }) => {
      const filter = postFilterOf(query);
      const rows = await listPosts(rooms.db, filter, pageOf(query));
      const confirmations = await loadConfirmations(
        rooms.db,
        rows.map(({ latest }) => latest),
      );
      return {
        posts: rows.map((row) => postViewOf(row, confirmations)),
        ...(await paginationFields(query, 'posts', () => totalPosts(rooms.db, filter))),
        next_cursor: nextCursorOf(rows, sizeOf(query), ({ original, updated }) =>
          placeCursor.write({ t: updated, h: original.item_hash }),
        ),
      };
    },
  );
}
