import type { HttpServer } from '@skerry/kit';
import { AggregateContent, AppError, PaginationView } from '@skerry/protocol';
import Type from 'typebox';
import { type Aggregate, findAggregate, listAggregates, readOwned } from '../aggregates/read.ts';
import { parseJsonPath } from '../lists/json-path.ts';
import { createCursor } from './cursor.ts';
import { reads, takesSigned } from './declare.ts';
import { normalizeAddress, parseListFilter } from './filters.ts';
import { pickPaths, topFieldsOf } from './json-pick.ts';
import { NextCursor, nextCursorOf, pageOf, pageQuery, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';
import { answerSubmitted, readBodiesAsBytes, submissionViews, submitBody } from './submission.ts';

const AggregateView = Type.Object({
  key: Type.String(),
  address: Type.String({ description: 'owner' }),
  content: Type.Object({}, { additionalProperties: true }),
  time: Type.Integer({ description: 'Unix seconds of the latest element' }),
  item_hash: Type.String({ description: 'the latest element' }),
  created: Type.String({ format: 'date-time' }),
  last_updated: Type.String({ format: 'date-time' }),
});

const isoOf = (seconds: number) => new Date(Math.min(seconds * 1000, 8.64e15)).toISOString();

const viewOf = (aggregate: Aggregate) => ({
  key: aggregate.key,
  address: aggregate.owner,
  content: aggregate.content as Record<string, unknown>,
  time: Math.floor(aggregate.time),
  item_hash: aggregate.itemHash,
  created: isoOf(aggregate.created),
  last_updated: isoOf(aggregate.time),
});

const cursor = createCursor(
  Type.Object({ t: Type.Number(), o: Type.String(), k: Type.String() }, { additionalProperties: false }),
);

const ListQuery = Type.Object(
  {
    ...pageQuery,
    address: Type.Optional(Type.String({ description: 'owners, comma-separated' })),
    key: Type.Optional(Type.String({ description: 'one key' })),
    keys: Type.Optional(Type.String({ description: 'keys, comma-separated' })),
    'content.fields': Type.Optional(
      Type.String({
        description:
          'paths such as profile.name, comma-separated: aggregates that have the first step of one, with these parts of their content alone',
      }),
    ),
  },
  { additionalProperties: false },
);

const FILE_KEYS_MAX = 1_000;

/** Aggregates: an owner's named objects, merged from messages (specification, "Aggregates"). */
export async function aggregateRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);

  app.post(
    '/aggregates',
    {
      schema: { summary: 'Write fields of an aggregate (signed AGGREGATE)', response: submissionViews },
      config: takesSigned({ type: 'AGGREGATE', content: AggregateContent }, 'MESSAGE_FORGOTTEN'),
    },
    async (request, reply) =>
      answerSubmitted(reply, await submitBody(rooms, request.body, { type: 'AGGREGATE' })),
  );

  app.get(
    '/aggregates/:address/:key',
    {
      schema: {
        summary: 'One aggregate',
        params: Type.Object({ address: Type.String(), key: Type.String() }),
        response: { 200: AggregateView },
      },
      config: reads('AGGREGATE_NOT_FOUND'),
    },
    async ({ params }) => {
      const aggregate = await findAggregate(rooms.db, normalizeAddress(params.address), params.key);
      if (!aggregate) {
        throw new AppError(
          'AGGREGATE_NOT_FOUND',
          `${params.address} has no aggregate ${JSON.stringify(params.key)}`,
        );
      }
      return viewOf(aggregate);
    },
  );

  app.get(
    '/aggregates',
    {
      schema: {
        summary: 'Aggregates, last changed first',
        querystring: ListQuery,
        response: {
          200: Type.Object({
            aggregates: Type.Array(AggregateView),
            pagination: PaginationView,
            next_cursor: NextCursor,
          }),
        },
      },
      config: reads('INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    },
    async ({ query }) => {
      const paths = parseListFilter('content.fields', query['content.fields'])?.map((text) =>
        parseJsonPath(text, 'content.fields'),
      );
      const keys = [query.key ?? [], parseListFilter('keys', query.keys) ?? []].flat();
      const filter = {
        owners: parseListFilter('address', query.address)?.map(normalizeAddress),
        keys: keys.length > 0 ? keys : undefined,
        fields: paths && topFieldsOf(paths),
      };
      const after = cursor.read(query.cursor);
      const page = { ...pageOf(query), after: after && { time: after.t, owner: after.o, key: after.k } };
      const { aggregates, total } = await listAggregates(rooms.db, filter, page);
      return {
        aggregates: aggregates.map((aggregate) => ({
          ...viewOf(aggregate),
          ...(paths ? { content: pickPaths(aggregate.content, paths) } : {}),
        })),
        pagination: paginationOf(query, total),
        next_cursor: nextCursorOf(aggregates, query.limit, (last) =>
          cursor.write({ t: last.time, o: last.owner, k: last.key }),
        ),
      };
    },
  );

  app.get(
    '/aggregates/:address.json',
    {
      schema: {
        summary: "An owner's aggregates by key, in the form of deployed nodes",
        params: Type.Object({ address: Type.String() }),
        querystring: Type.Object({
          keys: Type.Optional(Type.String({ description: 'keys, comma-separated' })),
          limit: Type.Integer({ minimum: 1, maximum: FILE_KEYS_MAX, default: FILE_KEYS_MAX }),
          with_info: Type.Boolean({ default: false, description: 'also when each was made and changed' }),
          value_only: Type.Boolean({ default: false, description: 'the content alone; with one key' }),
        }),
        response: {
          200: Type.Union([
            Type.Object({
              address: Type.String(),
              data: Type.Object({}, { additionalProperties: true }),
              info: Type.Object({}, { additionalProperties: true }),
            }),
            Type.Object({}, { additionalProperties: true }),
          ]),
        },
      },
      config: reads('AGGREGATE_NOT_FOUND'),
    },
    async ({ params, query }, reply) => {
      const owner = normalizeAddress(params.address);
      const keys = parseListFilter('keys', query.keys);
      const aggregates = await readOwned(rooms.db, owner, keys, query.limit);
      if (aggregates.length === 0)
        throw new AppError(
          'AGGREGATE_NOT_FOUND',
          `${owner} has no ${keys ? 'such aggregate' : 'aggregates'}`,
        );
      if (query.value_only && keys?.length === 1) return reply.send(aggregates[0]!.content);
      const entries = <T>(read: (aggregate: Aggregate) => T) =>
        Object.fromEntries(aggregates.map((aggregate) => [aggregate.key, read(aggregate)]));
      const info = entries((aggregate) => ({
        created: isoOf(aggregate.created),
        last_updated: isoOf(aggregate.time),
        last_update_item_hash: aggregate.itemHash,
      }));
      return { address: owner, data: entries(({ content }) => content), info: query.with_info ? info : {} };
    },
  );
}
