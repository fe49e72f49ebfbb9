import Type, { type Static } from 'typebox';
import { AggregateContent } from '../../content/aggregate.ts';
import { PaginationView } from '../../views.ts';
import { type Api, defaulted } from '../operation.ts';
import { reads, takesSigned } from './common/declare.ts';
import { NextCursor, pageQuery } from './common/pagination.ts';
import { SUBMISSION_ANSWERS } from './common/submission.ts';

const strict = { additionalProperties: false } as const;
const anyObject = (description: string) => Type.Record(Type.String(), Type.Unknown(), { description });

export const AggregateView = Type.Object(
  {
    key: Type.String(),
    address: Type.String({ description: 'owner' }),
    content: anyObject('the fields, each as its latest element says'),
    time: Type.Integer({ description: 'Unix seconds of the latest element' }),
    item_hash: Type.String({ description: 'the latest element' }),
    created: Type.String({ format: 'date-time' }),
    last_updated: Type.String({ format: 'date-time' }),
  },
  { title: 'Aggregate' },
);
export type AggregateView = Static<typeof AggregateView>;

const Address = Type.String({ description: 'an address, in any spelling of its chain' });
const OWNED_MAX = 1_000;

/** Aggregates: an owner's named objects, merged from messages (specification, "Aggregates"). */
export const AGGREGATES_API = {
  writeAggregate: {
    method: 'POST',
    path: '/api/v0/aggregates',
    summary: 'Write fields of an aggregate (signed AGGREGATE)',
    ...takesSigned({ type: 'AGGREGATE', content: AggregateContent }, 'MESSAGE_FORGOTTEN'),
    answers: SUBMISSION_ANSWERS,
  },
  getAggregate: {
    method: 'GET',
    path: '/api/v0/aggregates/:address/:key',
    summary: 'One aggregate',
    ...reads('AGGREGATE_NOT_FOUND'),
    params: Type.Object({ address: Address, key: Type.String({ description: 'the key of an aggregate' }) }),
    answers: { 200: AggregateView },
  },
  listAggregates: {
    method: 'GET',
    path: '/api/v0/aggregates',
    summary: 'Aggregates, last changed first',
    ...reads('INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    query: Type.Object(
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
      strict,
    ),
    answers: {
      200: Type.Object({
        aggregates: Type.Array(AggregateView),
        pagination: PaginationView,
        next_cursor: NextCursor,
      }),
    },
  },
  listOwnedAggregates: {
    method: 'GET',
    path: '/api/v0/aggregates/:address.json',
    summary: "An owner's aggregates by key, in the form of deployed nodes",
    ...reads('AGGREGATE_NOT_FOUND'),
    params: Type.Object({ address: Address }),
    query: Type.Object(
      {
        keys: Type.Optional(Type.String({ description: 'keys, comma-separated' })),
        limit: defaulted(
          Type.Integer({ minimum: 1, maximum: OWNED_MAX, description: 'how many keys' }),
          OWNED_MAX,
        ),
        with_info: defaulted(Type.Boolean({ description: 'also when each was made and changed' }), false),
        value_only: defaulted(Type.Boolean({ description: 'the content alone; with one key' }), false),
      },
      strict,
    ),
    answers: {
      200: Type.Union([
        Type.Object({
          address: Type.String(),
          data: anyObject('contents by key'),
          info: anyObject('when each was made and changed, by key'),
        }),
        anyObject('the content of the only key, where `value_only` asks for it'),
      ]),
    },
  },
} as const satisfies Api;
