import type { HttpServer } from '@skerry/kit';
import { AppError, MessageStatusView, MessageView, PaginationView, parseMessageHash } from '@skerry/protocol';
import Type from 'typebox';
import { listMessagesOfFile } from '../files/references.ts';
import { totalMessages } from '../lists/count.ts';
import { type MessageFilter, resolveFilter } from '../lists/filter.ts';
import { parseJsonPath } from '../lists/json-path.ts';
import { listMessages } from '../lists/messages.ts';
import { loadConfirmations } from '../messages/confirmations.ts';
import { findMessage, listForgetting } from '../messages/read.ts';
import { networkViewOf, viewOf } from '../messages/view.ts';
import { placeCursor } from './cursor.ts';
import { reads, takesSigned } from './declare.ts';
import { normalizeAddress, parseListFilter, parseTypes } from './filters.ts';
import { NextCursor, nextCursorOf, pageOf, pageQuery, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';
import {
  answerSubmitted,
  networkRefusalOf,
  RefusalView,
  readBodiesAsBytes,
  submissionViews,
  submitBody,
} from './submission.ts';
import { VerdictView, verdictOf } from './verdict-view.ts';

const list = (description: string) =>
  Type.Optional(Type.String({ description: `${description}, comma-separated` }));

const ListQuery = Type.Object(
  {
    ...pageQuery,
    hashes: list('item hashes'),
    addresses: list('sender addresses'),
    channels: list('channels'),
    tags: list('tags'),
    types: list('message types'),
    'content.keys': list('paths such as profile.name or items[*].id: messages whose content has one of them'),
  },
  { additionalProperties: false },
);

/** What a content may be refused with, beside what every signed body may be. */
const CONTENT_ERRORS = [
  'INVALID_SSH_KEY',
  'UNKNOWN_IMAGE',
  'INVALID_HASH',
  'HASH_MISMATCH',
  'AMEND_OF_AMEND',
  'AMEND_TARGET_NOT_FOUND',
  'FORGET_FORGET',
  'FORGET_TARGET_NOT_FOUND',
  'INSTANCE_NOT_FOUND',
  'FILE_NOT_FOUND',
  'CONTENT_NOT_FOUND',
  'MESSAGE_FORGOTTEN',
] as const;

const HashParams = Type.Object({ hash: Type.String({ description: 'item hash: SHA-256, or a CID' }) });

function filterOf(query: Type.Static<typeof ListQuery>): MessageFilter {
  return {
    hashes: parseListFilter('hashes', query.hashes)?.map((text) => parseMessageHash(text).hash),
    addresses: parseListFilter('addresses', query.addresses)?.map(normalizeAddress),
    channels: parseListFilter('channels', query.channels),
    tags: parseListFilter('tags', query.tags),
    types: parseTypes('types', query.types),
    keys: parseListFilter('content.keys', query['content.keys'])?.map((text) =>
      parseJsonPath(text, 'content.keys').join(''),
    ),
  };
}

/** Messages that are named to somebody who asks for a file where messages are. */
const STORES_NAMED = 10;

async function getMessage(rooms: Rooms, hash: string) {
  const row = await findMessage(rooms.db, hash);
  if (row) return row;
  const stores = await listMessagesOfFile(rooms.db, hash, STORES_NAMED);
  if (stores.length === 0) throw new AppError('MESSAGE_NOT_FOUND', `there is no message ${hash} here`);
  throw new AppError('MESSAGE_NOT_FOUND', `${hash} is a file; the message ${stores[0]} stores it`, {
    details: { file_hash: hash, messages: stores },
  });
}

/** Messages: submit, get, list (specification, "Messages"). */
export async function messageRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);

  app.post(
    '/messages',
    {
      schema: {
        summary: 'Submit a signed message, in the envelope or in the network form',
        response: { ...submissionViews, 422: RefusalView },
      },
      config: takesSigned({ alsoNetworkForm: true }, ...CONTENT_ERRORS),
    },
    async (request, reply) => {
      try {
        return answerSubmitted(reply, await submitBody(rooms, request.body));
      } catch (error) {
        const refusal = networkRefusalOf(error);
        if (!refusal) throw error;
        rooms.metrics.http.refused((error as AppError).code);
        return reply.status(422).send(refusal);
      }
    },
  );

  app.get(
    '/messages/:hash',
    {
      schema: {
        summary: 'One message, whatever became of it, and why',
        params: HashParams,
        response: { 200: Type.Object({ ...MessageView.properties, ...VerdictView.properties }) },
      },
      config: reads('INVALID_HASH', 'MESSAGE_NOT_FOUND'),
    },
    async (request) => {
      const { hash } = parseMessageHash(request.params.hash);
      const row = await getMessage(rooms, hash);
      const forgottenBy = row.status === 'forgotten' ? await listForgetting(rooms.db, hash) : [];
      const confirmations = await loadConfirmations(rooms.db, [row]);
      const { size: _size, ...message } = networkViewOf(row, confirmations);
      return {
        ...viewOf(row, confirmations),
        ...verdictOf(row),
        ...(row.status === 'pending' ? { messages: [message] } : { message }),
        ...(row.status === 'forgotten' ? { forgotten_by: forgottenBy } : {}),
      };
    },
  );

  app.get(
    '/messages/:hash/status',
    {
      schema: {
        summary: 'What became of a message, and why',
        params: HashParams,
        response: {
          200: MessageStatusView,
        },
      },
      config: reads('INVALID_HASH', 'MESSAGE_NOT_FOUND'),
    },
    async (request) => {
      const { hash } = parseMessageHash(request.params.hash);
      const row = await getMessage(rooms, hash);
      return { item_hash: hash, ...verdictOf(row), reason: row.reason };
    },
  );

  app.get(
    '/messages/:hash/content',
    {
      schema: {
        summary: 'The content of a message; of a POST, the content inside of it',
        params: HashParams,
        response: { 200: Type.Unknown() },
      },
      config: reads('INVALID_HASH', 'MESSAGE_NOT_FOUND', 'MESSAGE_FORGOTTEN', 'MESSAGE_NOT_PROCESSED'),
    },
    async (request, reply) => {
      const { hash } = parseMessageHash(request.params.hash);
      const row = await getMessage(rooms, hash);
      if (row.status !== 'processed') {
        throw new AppError(
          row.status === 'forgotten' ? 'MESSAGE_FORGOTTEN' : 'MESSAGE_NOT_PROCESSED',
          `the message ${hash} is ${row.status}`,
        );
      }
      const content = viewOf(row).content as { content?: unknown };
      return reply.send((row.type === 'POST' ? content.content : content) ?? null);
    },
  );

  app.get(
    '/messages',
    {
      schema: {
        summary: 'Messages in force, newest first',
        querystring: ListQuery,
        response: {
          200: Type.Object({
            messages: Type.Array(MessageView),
            pagination: PaginationView,
            next_cursor: NextCursor,
          }),
        },
      },
      config: reads('INVALID_HASH', 'INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    },
    async ({ query }) => {
      const filter = await resolveFilter(rooms.db, filterOf(query));
      const after = placeCursor.read(query.cursor);
      const page = { ...pageOf(query), after: after && { time: after.t, itemHash: after.h } };
      const [rows, total] = await Promise.all([
        listMessages(rooms.db, filter, page),
        totalMessages(rooms.db, filter),
      ]);
      const confirmations = await loadConfirmations(rooms.db, rows);
      return {
        messages: rows.map((row) => viewOf(row, confirmations)),
        pagination: paginationOf(query, total),
        next_cursor: nextCursorOf(rows, query.limit, (last) =>
          placeCursor.write({ t: last.time, h: last.item_hash }),
        ),
      };
    },
  );
}
