import type { Handlers } from '@skerry/kit';
import { AppError, LIMITS } from '@skerry/protocol';
import { MESSAGE_FILTERS, POST_FILTERS } from '@skerry/protocol/api/core/common/filters';
import { isYes } from '@skerry/protocol/api/core/common/flag';
import type { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { FastifyReply } from 'fastify';
import type { Kysely } from 'kysely';
import { listByConfirmation } from '../../state/lists/by-confirmation.ts';
import { totalMessages } from '../../state/lists/count.ts';
import { resolveFilter } from '../../state/lists/filter.ts';
import { listMessages, listStatuses } from '../../state/lists/messages.ts';
import { readFilters } from '../../state/lists/parameters.ts';
import { type MessageFilter, PROPERTIES } from '../../state/lists/properties.ts';
import type { Hold } from '../../state/lists/weight.ts';
import { loadConfirmations } from '../../state/messages/confirmations.ts';
import { hideForgotten } from '../../state/messages/find.ts';
import { type ContentFormat, networkListViewOf } from '../../state/messages/list-view.ts';
import { addProvable } from '../../state/messages/shared.ts';
import { listPosts, listPostsByConfirmation, totalPosts } from '../../state/posts/posts.ts';
import { POST_PROPERTIES, type PostFilter } from '../../state/posts/properties.ts';
import { briefPostViewOf, postViewOf } from '../../state/posts/view.ts';
import type { Schema } from '../../store/schema.ts';
import {
  confirmedPageOf,
  deployedPageOf,
  deployedPaginationOf,
  type NetworkPageQuery,
  networkPageOf,
  networkPaginationOf,
  nextConfirmedCursorOf,
  nextTimedCursorOf,
  placeOfMessage,
} from '../pagination.ts';
import type { Rooms } from '../rooms.ts';

type Handled = Handlers<typeof NETWORK_LISTS_API>;

interface Reading {
  readonly db: Kysely<Schema>;
  readonly hold: Hold;
}

interface ListQuery extends NetworkPageQuery {
  readonly sortBy: string;
  readonly [filter: string]: unknown;
}

/** Nothing ends before it begins, and 0 ends nothing. */
function checkEnds<Filter extends Pick<MessageFilter, 'from' | 'to' | 'fromBlock' | 'toBlock'>>(
  filter: Filter,
): Filter {
  const ends = { ...filter, to: filter.to || undefined, toBlock: filter.toBlock || undefined };
  const { from, to, fromBlock, toBlock } = ends;
  if (from !== undefined && to !== undefined && to < from)
    throw new AppError('INVALID_PARAMETERS', 'query.endDate is before query.startDate');
  if (fromBlock !== undefined && toBlock !== undefined && toBlock < fromBlock)
    throw new AppError('INVALID_PARAMETERS', 'query.endBlock is before query.startBlock');
  return ends;
}

const MILLISECONDS = 1_000;
const inMilliseconds = (seconds: number | undefined) =>
  seconds === undefined ? undefined : seconds * MILLISECONDS;

/** Statuses of messages whose life is over. */
const ENDED = ['forgotten', 'removed'];

/** Of messages whose life is over, dates are those of the end; so they are not listed together with others. */
function datedByEnd(filter: MessageFilter): MessageFilter {
  const { statuses, from, to } = filter;
  const ended = statuses?.filter((one) => ENDED.includes(one)) ?? [];
  if (!statuses || ended.length === 0) return filter;
  if (ended.length < statuses.length)
    throw new AppError(
      'INVALID_PARAMETERS',
      'query.msgStatuses: forgotten and removed cannot be combined with other statuses',
    );
  const dates = { settledFrom: inMilliseconds(from), settledTo: inMilliseconds(to) };
  return { ...filter, from: undefined, to: undefined, ...dates };
}

/** What a list of deployed nodes is filtered by, or a WebSocket. Throws INVALID_PARAMETERS, INVALID_HASH. */
export const messageFilterOf = (query: Readonly<Record<string, unknown>>): MessageFilter =>
  datedByEnd(checkEnds(readFilters(MESSAGE_FILTERS, PROPERTIES, '/messages.json', query) as MessageFilter));

/** A page of messages with what names the next one. */
async function readMessages({ db, hold }: Reading, filter: MessageFilter, query: ListQuery) {
  if (query.sortBy !== 'tx-time') {
    const page = networkPageOf(query);
    const rows = await listMessages(db, filter, page, hold);
    return { rows, next_cursor: nextTimedCursorOf(rows, page.limit, placeOfMessage) };
  }
  const page = confirmedPageOf(query);
  const rows = await listByConfirmation(db, filter, page, hold);
  const next_cursor = nextConfirmedCursorOf(rows, page.limit, (last) => ({
    confirmed: last.confirmed,
    ...placeOfMessage(last),
  }));
  return { rows, next_cursor };
}

interface BodiesQuery {
  readonly bodies?: 'shared' | undefined;
}

interface FormatQuery {
  readonly contentFormat?: ContentFormat | undefined;
  readonly excludeContent: boolean | string;
}

/** How much of their contents the messages are wanted with. */
export const contentFormatOf = ({ contentFormat, excludeContent }: FormatQuery): ContentFormat =>
  contentFormat ?? (isYes(excludeContent) ? 'none' : 'full');

/** Pages of deployed nodes may be long; with the messages themselves they are as long as other lists. */
function checkBodies(query: ListQuery & BodiesQuery): boolean {
  if (query.bodies === undefined) return false;
  if (networkPageOf(query).limit > LIMITS.pageSizeMax)
    throw new AppError(
      'INVALID_PARAMETERS',
      `query.bodies goes with pages of at most ${LIMITS.pageSizeMax} messages`,
    );
  return true;
}

async function answerMessages(reading: Reading, query: ListQuery & FormatQuery & BodiesQuery) {
  const { db } = reading;
  const isProvable = checkBodies(query);
  const filter = await resolveFilter(db, messageFilterOf(query));
  const format = contentFormatOf(query);
  const { rows, next_cursor } = await readMessages(reading, filter, query);
  const confirmations = await loadConfirmations(db, rows);
  const shown = await hideForgotten(db, rows);
  return {
    messages: await addProvable(
      db,
      shown.map((row) => networkListViewOf(row, confirmations, format)),
      isProvable,
    ),
    ...(await networkPaginationOf(query, 'messages', () => totalMessages(db, filter))),
    next_cursor,
  };
}

/** A page of posts with what names the next one. */
async function readPosts({ db, hold }: Reading, filter: PostFilter, query: ListQuery) {
  const placeOf = (last: Awaited<ReturnType<typeof listPosts>>[number]) => ({
    time: last.updated,
    itemHash: last.original.item_hash,
  });
  if (query.sortBy !== 'tx-time') {
    const page = networkPageOf(query);
    const rows = await listPosts(db, filter, page, hold);
    return { rows, next_cursor: nextTimedCursorOf(rows, page.limit, placeOf) };
  }
  const page = confirmedPageOf(query);
  const rows = await listPostsByConfirmation(db, filter, page, hold);
  const next_cursor = nextConfirmedCursorOf(rows, page.limit, (last) => ({
    confirmed: last.confirmed,
    ...placeOf(last),
  }));
  return { rows, next_cursor };
}

async function pageOfPosts(reading: Reading, query: ListQuery) {
  const asked: PostFilter = readFilters(POST_FILTERS, POST_PROPERTIES, '/posts.json', query);
  const filter: PostFilter = checkEnds(asked);
  const { rows, next_cursor } = await readPosts(reading, filter, query);
  const pagination = await networkPaginationOf(query, 'posts', () => totalPosts(reading.db, filter));
  return { rows, pagination: { ...pagination, next_cursor } };
}

async function answerPosts(reading: Reading, query: ListQuery) {
  const { rows, pagination } = await pageOfPosts(reading, query);
  const confirmations = await loadConfirmations(
    reading.db,
    rows.map((row) => row.latest),
  );
  return { posts: rows.map((row) => postViewOf(row, confirmations)), ...pagination };
}

async function answerBriefPosts(reading: Reading, query: ListQuery) {
  const { rows, pagination } = await pageOfPosts(reading, query);
  return { posts: rows.map(briefPostViewOf), ...pagination };
}

const ALL_STATUSES = ['processed', 'pending', 'rejected', 'forgotten'];

/** Lists as deployed nodes have them, which clients and measurement programs read (docs/decisions.md 12). */
export const networkListHandlers = ({
  db,
  answers,
  longLists,
}: Pick<Rooms, 'db' | 'answers' | 'longLists'>): Handled => {
  const reading = (reply: FastifyReply): Reading => ({
    db: longLists.askedIn(db, reply),
    hold: answers.of(reply),
  });
  return {
    listNetworkMessages: ({ query, reply }) => answerMessages(reading(reply), query),
    listNetworkMessagesOfPage: ({ params, query, reply }) =>
      answerMessages(reading(reply), { ...query, ...params }),
    async listMessageHashes({ query, reply }) {
      const { db } = reading(reply);
      const { status, startDate: from, endDate: to, hash_only } = query;
      const statuses = status === undefined ? ALL_STATUSES : [status];
      const filter = await resolveFilter(db, checkEnds({ statuses, from, to }));
      const page = { ...deployedPageOf(query), oldestFirst: query.sortOrder === 1 };
      const rows = await listStatuses(db, filter, page);
      const hashes = rows.map((row) =>
        isYes(hash_only)
          ? row.item_hash
          : {
              item_hash: row.item_hash,
              status: row.status,
              reception_time: row.received_at.toISOString(),
            },
      );
      const total = await totalMessages(db, filter);
      return { hashes, ...deployedPaginationOf(query, total), pagination_item: 'hashes' };
    },
    listNetworkPosts: ({ query, reply }) => answerPosts(reading(reply), query),
    listNetworkPostsOfPage: ({ params, query, reply }) =>
      answerPosts(reading(reply), { ...query, ...params }),
    listBriefPosts: ({ query, reply }) => answerBriefPosts(reading(reply), query),
    listBriefPostsOfPage: ({ params, query, reply }) =>
      answerBriefPosts(reading(reply), { ...query, ...params }),
  };
};
