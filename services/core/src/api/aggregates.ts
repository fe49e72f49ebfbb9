import type { Handlers } from '@skerry/kit';
import { AppError, normaliseAddress } from '@skerry/protocol';
import type {
  AGGREGATES_API,
  AggregateView,
  NetworkAggregateView,
} from '@skerry/protocol/api/core/aggregates';
import { isYes } from '@skerry/protocol/api/core/common/flag';
import { Type } from '@skerry/protocol/type';
import type { FastifyReply } from 'fastify';
import {
  type Aggregate,
  type AggregateFilter,
  type AggregatePage,
  findAggregate,
  listAggregates,
  readOwned,
} from '../state/aggregates/aggregates.ts';
import { parseJsonPath } from '../state/lists/json-path.ts';
import { parseListFilter } from '../state/lists/parameters.ts';
import type { Hold } from '../state/lists/weight.ts';
import { isoOf } from '../state/messages/view.ts';
import { createCursor } from './cursor.ts';
import { pickPaths, topFieldsOf } from './json-pick.ts';
import { answerOf, submitBody } from './messages/submit.ts';
import {
  deployedPaginationOf,
  eitherSizeOf,
  nextCursorOf,
  pageOf,
  paginationOf,
  sizeOfPage,
} from './pagination.ts';
import type { Rooms } from './rooms.ts';

const viewOf = (aggregate: Aggregate): AggregateView => ({
  key: aggregate.key,
  address: aggregate.spelling,
  content: aggregate.content as Record<string, unknown>,
  time: Math.floor(aggregate.time),
  item_hash: aggregate.itemHash,
  created: isoOf(aggregate.created),
  last_updated: isoOf(aggregate.time),
});

const networkViewOf = (aggregate: Aggregate): NetworkAggregateView => {
  const { address, key, content, created, last_updated } = viewOf(aggregate);
  return { address, key, content, created, last_updated };
};

const cursor = createCursor(
  Type.Object({ t: Type.Number(), o: Type.String(), k: Type.String() }, { additionalProperties: false }),
);

interface ListQuery {
  readonly page: number;
  readonly sortBy: string;
  readonly sortOrder: number;
  readonly cursor?: string | undefined;
}

/** A page of aggregates with what names the next one. */
async function readPage(
  { db, hold }: { readonly db: Rooms['db']; readonly hold: Hold },
  filter: AggregateFilter,
  query: ListQuery,
  limit: number,
): Promise<{ aggregates: Aggregate[]; total: number; next_cursor: string | null }> {
  const after = cursor.read(query.cursor);
  const sortedBy = query.sortBy === 'creation_time' ? 'created' : undefined;
  const page: AggregatePage = {
    ...pageOf({ page: query.page, limit, cursor: query.cursor }),
    ...{ sortedBy, oldestFirst: query.sortOrder === 1 },
    after: after && { time: after.t, owner: after.o, key: after.k },
  };
  const found = await listAggregates(db, filter, page, hold);
  const next_cursor = nextCursorOf(found.aggregates, limit, (last) =>
    cursor.write({ t: last[sortedBy ?? 'time'], o: last.owner, k: last.key }),
  );
  return { ...found, next_cursor };
}

const ownersOf = (name: string, text: string | undefined) =>
  parseListFilter(name, text)?.map(normaliseAddress);

type Used = Pick<Rooms, 'db' | 'intake' | 'answers' | 'clientOf' | 'longLists'>;

const readingOf = ({ db, answers, longLists }: Used, reply: FastifyReply) => ({
  db: longLists.askedIn(db, reply),
  hold: answers.of(reply),
});

type Handled = Handlers<typeof AGGREGATES_API>;
type Deployed = 'listNetworkAggregates' | 'listOwnedAggregates';

const ownHandlers = (used: Used): Omit<Handled, Deployed> => ({
  writeAggregate: async ({ body, request }) =>
    answerOf(await submitBody(used, body, { type: 'AGGREGATE', client: used.clientOf(request) }), {}),
  async getAggregate({ params, reply }) {
    const { db, hold } = readingOf(used, reply);
    const aggregate = await findAggregate(db, normaliseAddress(params.address), params.key, hold);
    if (aggregate) return viewOf(aggregate);
    throw new AppError(
      'AGGREGATE_NOT_FOUND',
      `${params.address} has no aggregate ${JSON.stringify(params.key)}`,
    );
  },
  async listAggregates({ query, reply }) {
    const { address, addresses } = query;
    if (address !== undefined && addresses !== undefined)
      throw new AppError(
        'INVALID_PARAMETERS',
        'query.address and query.addresses mean the same; send one of them',
      );
    const paths = parseListFilter('content.fields', query['content.fields'])?.map((text) =>
      parseJsonPath(text, 'content.fields'),
    );
    const keys = [query.key ?? [], parseListFilter('keys', query.keys) ?? []].flat();
    const filter = {
      owners: ownersOf('address', address) ?? ownersOf('addresses', addresses),
      keys: keys.length > 0 ? keys : undefined,
      fields: paths && topFieldsOf(paths),
    };
    const size = eitherSizeOf(query);
    const reading = readingOf(used, reply);
    const { aggregates, total, next_cursor } = await readPage(reading, filter, query, size);
    return {
      aggregates: aggregates.map((aggregate) => ({
        ...viewOf(aggregate),
        ...(paths ? { content: pickPaths(aggregate.content, paths) } : {}),
      })),
      pagination: paginationOf({ page: query.page, limit: size }, total),
      ...deployedPaginationOf({ page: query.page, pagination: size }, total),
      pagination_item: 'aggregates',
      next_cursor,
    };
  },
});

/** As deployed nodes have them. */
const deployedHandlers = (used: Used): Pick<Handled, Deployed> => ({
  async listNetworkAggregates({ query, reply }) {
    const filter = {
      owners: ownersOf('addresses', query.addresses),
      keys: parseListFilter('keys', query.keys),
    };
    const limit = sizeOfPage(query.pagination);
    const reading = readingOf(used, reply);
    const { aggregates, total, next_cursor } = await readPage(reading, filter, query, limit);
    const { pagination_per_page, ...numbered } = deployedPaginationOf(query, total);
    return {
      aggregates: aggregates.map(networkViewOf),
      pagination_per_page,
      pagination_item: 'aggregates',
      ...(query.cursor === undefined ? numbered : {}),
      next_cursor,
    };
  },
  async listOwnedAggregates({ params, query, reply }) {
    const { db, hold } = readingOf(used, reply);
    const owner = normaliseAddress(params.address);
    const keys = parseListFilter('keys', query.keys);
    const aggregates = await readOwned(db, owner, keys, query.limit, hold);
    if (aggregates.length === 0)
      throw new AppError('AGGREGATE_NOT_FOUND', `${owner} has no ${keys ? 'such aggregate' : 'aggregates'}`);
    if (isYes(query.value_only) && keys?.length === 1) return aggregates[0]!.content;
    const entries = <T>(read: (aggregate: Aggregate) => T) =>
      Object.fromEntries(aggregates.map((aggregate) => [aggregate.key, read(aggregate)]));
    const info = entries((aggregate) => ({
      created: isoOf(aggregate.created),
      last_updated: isoOf(aggregate.time),
      last_update_item_hash: aggregate.itemHash,
    }));
    return {
      address: params.address,
      data: entries(({ content }) => content),
      info: isYes(query.with_info) ? info : {},
    };
  },
});

/** Aggregates: an owner's named objects, merged from messages (specification, "Aggregates"). */
export const aggregateHandlers = (rooms: Used): Handled => ({
  ...ownHandlers(rooms),
  ...deployedHandlers(rooms),
});
