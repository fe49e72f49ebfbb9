import { AggregateContent } from '../../content/aggregate.ts';
import { LIMITS } from '../../limits.ts';
import { type Static, Type } from '../../type.ts';
import { PaginationView } from '../../views.ts';
import { type Api, defaulted, NO_PARAMETERS } from '../operation.ts';
import { asDeployed, reads, takesSigned } from './common/declare.ts';
import { flag } from './common/flag.ts';
import {
  deployedPageQuery,
  deployedPaginationView,
  NextCursor,
  networkPageQuery,
  networkPaginationView,
  pageQuery,
} from './common/pagination.ts';
import { SUBMISSION_ANSWERS } from './common/submission.ts';

const strict = { additionalProperties: false } as const;
const anyObject = (description: string) => Type.Record(Type.String(), Type.Unknown(), { description });

const networkFields = {
  key: Type.String(),
  address: Type.String({ description: 'owner' }),
  content: anyObject('the fields, each as its latest element says'),
  created: Type.String({ format: 'date-time' }),
  last_updated: Type.String({ format: 'date-time' }),
};

export const AggregateView = Type.Object(
  {
    key: networkFields.key,
    address: networkFields.address,
    content: networkFields.content,
    time: Type.Integer({ description: 'time of the latest message merged into it, Unix seconds' }),
    item_hash: Type.String({ description: 'the latest message merged into it' }),
    created: networkFields.created,
    last_updated: networkFields.last_updated,
  },
  { title: 'Aggregate' },
);
export type AggregateView = Static<typeof AggregateView>;

/** The same with the fields of deployed nodes alone. */
export const NetworkAggregateView = Type.Object(networkFields, { title: 'NetworkAggregate' });
export type NetworkAggregateView = Static<typeof NetworkAggregateView>;

/** How deployed clients ask for aggregates. */
const networkQuery = {
  addresses: Type.Optional(Type.String({ description: 'owners, comma-separated' })),
  keys: Type.Optional(Type.String({ description: 'keys, comma-separated' })),
  sortBy: defaulted(
    Type.Enum(['last_modified', 'creation_time'], { description: 'the last change, or the first' }),
    'last_modified',
  ),
  sortOrder: defaulted(Type.Integer({ enum: [-1, 1], description: '-1: newest first' }), -1),
};

/** An owner's aggregates in the form of deployed nodes. */
export const OwnedAggregatesView = Type.Object(
  {
    address: Type.String(),
    data: anyObject('contents by key'),
    info: Type.Optional(anyObject('when each was made and changed, by key')),
  },
  { title: 'OwnedAggregates' },
);

const Address = Type.String({ description: 'an address, in any spelling of its chain' });
const OWNED_MAX = 1_000;

/** Aggregates: an owner's named objects, merged from messages (specification, "Aggregates"). */
export const AGGREGATES_API = {
  writeAggregate: {
    method: 'POST',
    path: '/api/v0/aggregates',
    summary: 'Set fields of an aggregate (signed AGGREGATE)',
    ...takesSigned({ type: 'AGGREGATE', content: AggregateContent }, 'MESSAGE_FORGOTTEN'),
    answers: SUBMISSION_ANSWERS,
  },
  getAggregate: {
    method: 'GET',
    path: '/api/v0/aggregates/:address/:key',
    query: NO_PARAMETERS,
    summary: 'Get an aggregate',
    ...reads('AGGREGATE_NOT_FOUND', 'LIST_TOO_COSTLY'),
    params: Type.Object({ address: Address, key: Type.String({ description: 'the key of an aggregate' }) }),
    answers: { 200: AggregateView },
  },
  listAggregates: {
    method: 'GET',
    path: '/api/v0/aggregates',
    summary: 'List aggregates, last changed first',
    ...reads('INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    query: Type.Object(
      {
        ...pageQuery,
        limit: networkPageQuery.limit,
        pagination: networkPageQuery.pagination,
        ...networkQuery,
        address: Type.Optional(Type.String({ description: 'the same as `addresses`' })),
        key: Type.Optional(Type.String({ description: 'one key' })),
        'content.fields': Type.Optional(
          Type.String({
            description:
              'paths such as profile.name, comma-separated: aggregates that have the first step of one, with these parts of their content alone',
          }),
        ),
      },
      strict,
    ),
    answers: {
      200: Type.Object({
        aggregates: Type.Array(AggregateView),
        pagination: PaginationView,
        ...deployedPaginationView,
        pagination_item: Type.Literal('aggregates'),
        next_cursor: NextCursor,
      }),
    },
    deployed: { differs: 'items also say `time` and `item_hash`' },
  },
  listNetworkAggregates: {
    method: 'GET',
    path: '/api/v0/aggregates.json',
    summary: 'List aggregates in the form of deployed nodes',
    tag: 'aggregates',
    ...reads('INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    ...asDeployed,
    query: Type.Object(
      { ...networkQuery, ...deployedPageQuery(LIMITS.pageSizeDefault), cursor: pageQuery.cursor },
      strict,
    ),
    answers: {
      200: Type.Object({ aggregates: Type.Array(NetworkAggregateView), ...networkPaginationView }),
    },
    deployed: {},
  },
  listOwnedAggregates: {
    method: 'GET',
    path: '/api/v0/aggregates/:address.json',
    summary: "Get an owner's aggregates by key, in the form of deployed nodes",
    ...reads('AGGREGATE_NOT_FOUND', 'LIST_TOO_COSTLY'),
    ...asDeployed,
    params: Type.Object({ address: Address }),
    query: Type.Object(
      {
        keys: Type.Optional(Type.String({ description: 'keys, comma-separated' })),
        limit: defaulted(
          Type.Integer({ minimum: 1, maximum: OWNED_MAX, description: 'how many keys' }),
          OWNED_MAX,
        ),
        with_info: flag('also when each was made and changed'),
        value_only: flag('the content alone; with one key'),
      },
      strict,
    ),
    answers: {
      200: Type.Union([
        OwnedAggregatesView,
        anyObject('the content of the only key, where `value_only` asks for it'),
      ]),
    },
    deployed: { differs: 'at most 1,000 keys' },
  },
} as const satisfies Api;
