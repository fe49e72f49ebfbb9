import type { Handlers } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { AGGREGATES_API, AggregateView } from '@skerry/protocol/api/core/aggregates';
import Type from 'typebox';
import { type Aggregate, findAggregate, listAggregates, readOwned } from '../state/aggregates/aggregates.ts';
import { parseJsonPath } from '../state/lists/json-path.ts';
import { normalizeAddress, parseListFilter } from '../state/lists/parameters.ts';
import { createCursor } from './cursor.ts';
import { pickPaths, topFieldsOf } from './json-pick.ts';
import { answerOf, submitBody } from './messages/submission.ts';
import { nextCursorOf, pageOf, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';

const isoOf = (seconds: number) => new Date(Math.min(seconds * 1000, 8.64e15)).toISOString();

const viewOf = (aggregate: Aggregate): AggregateView => ({
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

/** Aggregates: an owner's named objects, merged from messages (specification, "Aggregates"). */
export const aggregateHandlers = ({
  db,
  intake,
}: Pick<Rooms, 'db' | 'intake'>): Handlers<typeof AGGREGATES_API> => ({
  writeAggregate: async ({ body }) => answerOf(await submitBody({ intake }, body, { type: 'AGGREGATE' }), {}),
  async getAggregate({ params }) {
    const aggregate = await findAggregate(db, normalizeAddress(params.address), params.key);
    if (aggregate) return viewOf(aggregate);
    throw new AppError(
      'AGGREGATE_NOT_FOUND',
      `${params.address} has no aggregate ${JSON.stringify(params.key)}`,
    );
  },
  async listAggregates({ query }) {
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
    const { aggregates, total } = await listAggregates(db, filter, page);
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
  async listOwnedAggregates({ params, query }) {
    const owner = normalizeAddress(params.address);
    const keys = parseListFilter('keys', query.keys);
    const aggregates = await readOwned(db, owner, keys, query.limit);
    if (aggregates.length === 0)
      throw new AppError('AGGREGATE_NOT_FOUND', `${owner} has no ${keys ? 'such aggregate' : 'aggregates'}`);
    if (query.value_only && keys?.length === 1) return aggregates[0]!.content;
    const entries = <T>(read: (aggregate: Aggregate) => T) =>
      Object.fromEntries(aggregates.map((aggregate) => [aggregate.key, read(aggregate)]));
    const info = entries((aggregate) => ({
      created: isoOf(aggregate.created),
      last_updated: isoOf(aggregate.time),
      last_update_item_hash: aggregate.itemHash,
    }));
    return { address: owner, data: entries(({ content }) => content), info: query.with_info ? info : {} };
  },
});
