import { answer, type Handlers } from '@skerry/kit';
import { AppError, parseMessageHash } from '@skerry/protocol';
import { MESSAGE_FILTERS, POST_FILTERS } from '@skerry/protocol/api/core/common/filters';
import type { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import type { Kysely } from 'kysely';
import { totalMessages } from '../../state/lists/count.ts';
import { resolveFilter } from '../../state/lists/filter.ts';
import { listMessages } from '../../state/lists/messages.ts';
import { readFilters } from '../../state/lists/parameters.ts';
import { type MessageFilter, PROPERTIES } from '../../state/lists/properties.ts';
import { loadConfirmations } from '../../state/messages/confirmations.ts';
import { findMessage, listForgetting } from '../../state/messages/find.ts';
import { networkViewOf, viewOf } from '../../state/messages/view.ts';
import { listPosts, totalPosts } from '../../state/posts/posts.ts';
import { POST_PROPERTIES, type PostFilter } from '../../state/posts/properties.ts';
import { postViewOf } from '../../state/posts/view.ts';
import { listMessagesOfFile } from '../../store/files/references.ts';
import type { Schema } from '../../store/schema.ts';
import {
  networkPageOf,
  networkPaginationOf,
  nextTimedCursorOf,
  paginationOf,
  timedPageOf,
} from '../pagination.ts';
import type { Rooms } from '../rooms.ts';
import { answerOf, networkRefusalOf, submitBody } from './submission.ts';
import { verdictOf } from './verdict-view.ts';

/** Messages that are named to somebody who asks for a file where messages are. */
const STORES_NAMED = 10;

async function getRow(db: Kysely<Schema>, text: string) {
  const { hash } = parseMessageHash(text);
  const row = await findMessage(db, hash);
  if (row) return row;
  const stores = await listMessagesOfFile(db, hash, STORES_NAMED);
  if (stores.length === 0) throw new AppError('MESSAGE_NOT_FOUND', `there is no message ${hash} here`);
  throw new AppError('MESSAGE_NOT_FOUND', `${hash} is a file; the message ${stores[0]} stores it`, {
    details: { file_hash: hash, messages: stores },
  });
}

/** What a list of deployed nodes is filtered by, or a WebSocket. */
export const messageFilterOf = (query: Readonly<Record<string, unknown>>): MessageFilter =>
  checkDates(readFilters(MESSAGE_FILTERS, PROPERTIES, '/messages.json', query) as MessageFilter);

/** A time that ends before it begins is a mistake. */
function checkDates<Filter extends Pick<MessageFilter, 'from' | 'to'>>(filter: Filter): Filter {
  const { from, to } = filter;
  if (from !== undefined && to !== undefined && to < from)
    throw new AppError('INVALID_PARAMETERS', 'query.endDate is before query.startDate');
  return filter;
}

const placeOfMessage = (last: { readonly time: number; readonly item_hash: string }) => ({
  time: last.time,
  itemHash: last.item_hash,
});

type Used = Pick<Rooms, 'db' | 'intake' | 'metrics'>;
type MessageHandlers = Handlers<typeof MESSAGES_API>;

/** One message: submitted, and looked at (specification, "Messages"). */
const oneMessage = ({
  db,
  intake,
  metrics,
}: Used): Pick<
  MessageHandlers,
  'submitMessage' | 'getMessage' | 'getMessageStatus' | 'getMessageContent'
> => ({
  async submitMessage({ body }) {
    try {
      return answerOf(await submitBody({ intake }, body), {});
    } catch (error) {
      const refusal = networkRefusalOf(error);
      if (!refusal) throw error;
      metrics.http.refused((error as AppError).code);
      return answer(422, refusal);
    }
  },
  async getMessage({ params }) {
    const row = await getRow(db, params.hash);
    const forgottenBy = row.status === 'forgotten' ? await listForgetting(db, row.item_hash) : [];
    const confirmations = await loadConfirmations(db, [row]);
    const { size: _size, ...message } = networkViewOf(row, confirmations);
    return {
      ...viewOf(row, confirmations),
      ...verdictOf(row),
      ...(row.status === 'pending' ? { messages: [message] } : { message }),
      ...(row.status === 'forgotten' ? { forgotten_by: forgottenBy } : {}),
    };
  },
  async getMessageStatus({ params }) {
    const row = await getRow(db, params.hash);
    return { item_hash: row.item_hash, ...verdictOf(row), reason: row.reason };
  },
  async getMessageContent({ params, reply }) {
    const row = await getRow(db, params.hash);
    if (row.status !== 'processed') {
      throw new AppError(
        row.status === 'forgotten' ? 'MESSAGE_FORGOTTEN' : 'MESSAGE_NOT_PROCESSED',
        `the message ${row.item_hash} is ${row.status}`,
      );
    }
    const content = viewOf(row).content as { content?: unknown };
    return reply.send((row.type === 'POST' ? content.content : content) ?? null);
  },
});

/** Lists, in our form and in that of deployed nodes, which clients and measurement programs read (docs/decisions.md 12). */
const lists = ({
  db,
}: Used): Pick<MessageHandlers, 'listMessages' | 'listNetworkMessages' | 'listNetworkPosts'> => ({
  async listMessages({ query }) {
    const filter = await resolveFilter(db, readFilters(MESSAGE_FILTERS, PROPERTIES, '/messages', query));
    const [rows, total] = await Promise.all([
      listMessages(db, filter, timedPageOf(query)),
      totalMessages(db, filter),
    ]);
    const confirmations = await loadConfirmations(db, rows);
    return {
      messages: rows.map((row) => viewOf(row, confirmations)),
      pagination: paginationOf(query, total),
      next_cursor: nextTimedCursorOf(rows, query.limit, placeOfMessage),
    };
  },
  async listNetworkMessages({ query }) {
    const filter = await resolveFilter(db, messageFilterOf(query));
    const page = networkPageOf(query);
    const rows = await listMessages(db, filter, page);
    const confirmations = await loadConfirmations(db, rows);
    return {
      messages: rows.map((row) => networkViewOf(row, confirmations)),
      ...(await networkPaginationOf(query, 'messages', () => totalMessages(db, filter))),
      next_cursor: nextTimedCursorOf(rows, page.limit, placeOfMessage),
    };
  },
  async listNetworkPosts({ query }) {
    const asked: PostFilter = readFilters(POST_FILTERS, POST_PROPERTIES, '/posts.json', query);
    const filter = checkDates(asked);
    const page = networkPageOf(query);
    const rows = await listPosts(db, filter, page);
    const latest = rows.map((row) => row.latest);
    const confirmations = await loadConfirmations(db, latest);
    return {
      posts: rows.map((row) => postViewOf(row, confirmations)),
      ...(await networkPaginationOf(query, 'posts', () => totalPosts(db, filter))),
      next_cursor: nextTimedCursorOf(rows, page.limit, ({ original, updated }) => ({
        time: updated,
        itemHash: original.item_hash,
      })),
    };
  },
});

/** Messages: submit, get, list. */
export const messageHandlers = (rooms: Used): MessageHandlers => ({ ...oneMessage(rooms), ...lists(rooms) });
