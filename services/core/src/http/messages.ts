import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, MessageView, PaginationView, parseItemHash, SubmitView } from '@skerry/protocol';
import Type from 'typebox';
import { findMessage, listMessages } from '../messages/read.ts';
import { reads, takesSigned } from './declare.ts';
import { normalizeAddress, parseListFilter } from './filters.ts';
import { pageOf, pageQuery, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';
import { acceptBody, readBodiesAsBytes } from './signed-body.ts';

const ListQuery = Type.Object(
  {
    ...pageQuery,
    hashes: Type.Optional(Type.String({ description: 'comma-separated item hashes' })),
    addresses: Type.Optional(Type.String({ description: 'comma-separated sender addresses' })),
    channels: Type.Optional(Type.String({ description: 'comma-separated channels' })),
    types: Type.Optional(Type.String({ description: 'comma-separated message types' })),
  },
  { additionalProperties: false },
);

/** Messages: submit, get, list (specification, "Messages"). */
export async function messageRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);

  app.post(
    '/messages',
    {
      schema: { summary: 'Submit a signed message', response: { 200: SubmitView } },
      config: takesSigned({}, 'INVALID_SSH_KEY', 'INSTANCE_NOT_FOUND', 'FILE_NOT_FOUND'),
      bodyLimit: LIMITS.jsonBodyBytes,
    },
    async (request) => {
      const accepted = acceptBody(request.body, rooms.now());
      await rooms.pipeline.submit(accepted);
      return { item_hash: accepted.message.itemHash, status: 'success' as const };
    },
  );

  app.get(
    '/messages/:hash',
    {
      schema: {
        summary: 'One message',
        params: Type.Object({ hash: Type.String() }),
        response: { 200: MessageView },
      },
      config: reads('INVALID_HASH', 'MESSAGE_NOT_FOUND'),
    },
    async (request) => {
      const hash = parseItemHash(request.params.hash);
      const message = await findMessage(rooms.db, hash);
      if (!message) throw new AppError('MESSAGE_NOT_FOUND', `there is no message ${hash} here`);
      return message;
    },
  );

  app.get(
    '/messages',
    {
      schema: {
        summary: 'Messages, newest first',
        querystring: ListQuery,
        response: { 200: Type.Object({ messages: Type.Array(MessageView), pagination: PaginationView }) },
      },
      config: reads('INVALID_HASH'),
    },
    async ({ query }) => {
      const filter = {
        hashes: parseListFilter('hashes', query.hashes)?.map(parseItemHash),
        addresses: parseListFilter('addresses', query.addresses)?.map(normalizeAddress),
        channels: parseListFilter('channels', query.channels),
        types: parseListFilter('types', query.types),
      };
      const { messages, total } = await listMessages(rooms.db, filter, pageOf(query));
      return { messages, pagination: paginationOf(query, total) };
    },
  );
}
