import { LIMITS } from '../../../limits.ts';
import { type Static, Type } from '../../../type.ts';
import { type Api, defaulted, NO_PARAMETERS } from '../../operation.ts';
import { fromTime, toTime } from '../common/dates.ts';
import { asDeployed, reads } from '../common/declare.ts';
import { flag } from '../common/flag.ts';
import { deployedPageQuery, deployedPaginationView, NextCursor, pageQuery } from '../common/pagination.ts';

/** Text that the database can hold. */
const NO_NUL = '^[^\\u0000]*$';
const text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 256, pattern: NO_NUL, description }));
const list = (description: string) =>
  Type.Optional(
    Type.String({ maxLength: 4096, pattern: NO_NUL, description: `${description}, comma-separated` }),
  );
const strict = { additionalProperties: false } as const;
const sortOrder = Type.Integer({ enum: [-1, 1], description: '-1: newest or largest first' });

const AddressParams = Type.Object({
  address: Type.String({
    minLength: 1,
    maxLength: LIMITS.addressChars,
    pattern: NO_NUL,
    description: 'an address, in any spelling of its chain',
  }),
});
const addressed = { method: 'GET', tag: 'addresses', ...asDeployed, params: AddressParams } as const;
const listed = { method: 'GET', ...asDeployed } as const;

const FilesView = Type.Object(
  {
    address: Type.String(),
    total_size: Type.Integer({ description: 'bytes of all files together' }),
    files: Type.Array(
      Type.Object({
        file_hash: Type.String({ description: 'SHA-256 or CID' }),
        size: Type.Integer({ description: 'bytes' }),
        type: Type.Literal('file'),
        created: Type.String({ format: 'date-time' }),
        item_hash: Type.String({ description: 'the STORE message' }),
      }),
    ),
    ...deployedPaginationView,
  },
  { title: 'AddressFiles' },
);

const counts = {
  messages: Type.Integer(),
  aggregate: Type.Integer(),
  forget: Type.Integer(),
  instance: Type.Integer(),
  post: Type.Integer(),
  program: Type.Integer(),
  store: Type.Integer(),
};
export const AddressStatsView = Type.Object(counts, { title: 'AddressStats' });
export type AddressStatsView = Static<typeof AddressStatsView>;
const StatsByAddress = Type.Record(Type.String(), AddressStatsView);

/** What addresses may be sorted by. */
const STATS_ORDERS = ['MESSAGES', 'POST', 'AGGREGATE', 'STORE', 'FORGET', 'PROGRAM', 'INSTANCE'] as const;

const chains = list('chain codes');
const minBalance = Type.Optional(
  Type.Number({ minimum: 0, description: 'only addresses that have at least this much' }),
);
const balanceQuery = {
  chains,
  min_balance: minBalance,
  minBalance,
  ...deployedPageQuery(LIMITS.pageSizeMax),
  cursor: pageQuery.cursor,
};

const permits = {
  channels: list('channels'),
  types: list('message types'),
  postTypes: list('types of POST contents'),
  chains,
  aggregateKeys: list('keys of aggregates'),
  ...deployedPageQuery(LIMITS.pageSizeDefault),
};
const AuthorizationsView = Type.Object(
  {
    authorizations: Type.Record(Type.String(), Type.Array(Type.Record(Type.String(), Type.Unknown())), {
      description: 'by the other address: what is permitted, as it was written',
    }),
    ...deployedPaginationView,
    pagination_item: Type.Literal('authorizations'),
    address: Type.String(),
  },
  { title: 'Authorizations' },
);

const SummaryView = Type.Object(
  {
    address: Type.String(),
    entry_count: Type.Integer(),
    total_amount: Type.Integer({ description: 'whole credits' }),
    total_incoming: Type.Integer(),
    total_outgoing: Type.Integer({ description: 'below zero' }),
  },
  { title: 'CreditSummary' },
);

/** What deployed clients narrow a credit history by. */
export const creditFilters = {
  tx_hash: text('of the transaction'),
  token: text('that was paid with'),
  chain: text('of the transaction'),
  provider: text('of the payment'),
  origin: text('where it comes from'),
  origin_ref: text('the transaction, the note, or the resource'),
  payment_method: text('how it was paid'),
  exclude_payment_method: text('how it was not paid'),
  has_expiration: Type.Optional(flag('those that expire; none does')),
  startDate: fromTime,
  endDate: toTime,
  direction: Type.Optional(Type.Enum(['incoming', 'outgoing'], { description: 'what was bought, or used' })),
  resourceTypes: list('types of the messages that cost it'),
  resource: text('item hash of the message that cost it'),
};

/** What deployed nodes answer of addresses: what they have, did, own and permit. */
export const ADDRESSES_API = {
  listAddressFiles: {
    ...addressed,
    path: '/api/v0/addresses/:address/files',
    summary: 'List the files of an address',
    ...reads('INVALID_ADDRESS', 'INVALID_HASH', 'LIST_TOO_COSTLY'),
    query: Type.Object(
      {
        ...deployedPageQuery(LIMITS.pageSizeMax),
        sort_order: Type.Optional(sortOrder),
        sortOrder: Type.Optional(sortOrder),
        file_hash: Type.Optional(Type.String({ description: 'only this file' })),
      },
      strict,
    ),
    answers: { 200: FilesView },
    deployed: {
      differs:
        '200 with an empty list if the address has no files, not 404; pages are numbered, and `cursor` is refused',
    },
  },
  listAddressPostTypes: {
    ...addressed,
    path: '/api/v0/addresses/:address/post_types',
    query: NO_PARAMETERS,
    summary: 'List the post types an address has used',
    ...reads('INVALID_ADDRESS', 'LIST_TOO_COSTLY'),
    answers: { 200: Type.Object({ address: Type.String(), post_types: Type.Array(Type.String()) }) },
    deployed: {},
  },
  listAddressChannels: {
    ...addressed,
    path: '/api/v0/addresses/:address/channels',
    query: NO_PARAMETERS,
    summary: 'List the channels an address has used',
    ...reads('INVALID_ADDRESS', 'LIST_TOO_COSTLY'),
    answers: { 200: Type.Object({ address: Type.String(), channels: Type.Array(Type.String()) }) },
    deployed: {},
  },
  getAddressStats: {
    ...listed,
    path: '/api/v0/addresses/stats.json',
    summary: 'Count the messages of addresses by type',
    ...reads('LIST_TOO_COSTLY'),
    query: Type.Object(
      {
        'addresses[]': Type.Optional(
          Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: LIMITS.pageSizeMax })], {
            description: `an address; may be given ${LIMITS.pageSizeMax} times. The most active ones where it is left out`,
          }),
        ),
        addresses: list('the same in one'),
      },
      strict,
    ),
    answers: { 200: Type.Object({ data: StatsByAddress }) },
    deployed: {},
  },
  listAddressStats: {
    ...listed,
    path: '/api/v1/addresses/stats.json',
    summary: 'List addresses by their number of messages',
    tag: 'addresses',
    ...reads('INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    query: Type.Object(
      {
        addressContains: text('part of the address'),
        sortBy: defaulted(
          Type.Enum([...STATS_ORDERS], { description: 'the type that is counted' }),
          'MESSAGES',
        ),
        sortOrder: defaulted(sortOrder, -1),
        pagination: defaulted(
          Type.Integer({
            minimum: 0,
            maximum: LIMITS.pageSizeMax,
            description: `page size; 0 for the largest, ${LIMITS.pageSizeMax}`,
          }),
          LIMITS.pageSizeDefault,
        ),
        page: pageQuery.page,
      },
      strict,
    ),
    answers: {
      200: Type.Object({
        data: StatsByAddress,
        ...deployedPaginationView,
        pagination_item: Type.Literal('addresses'),
      }),
    },
    deployed: {
      differs:
        'a page has at most 100 addresses, even if `pagination` is 0; pages are numbered, and `cursor` is refused',
    },
  },
  listBalances: {
    ...listed,
    path: '/api/v0/balances',
    summary: 'List token balances; always empty, since everything is paid with credits',
    ...reads(),
    query: Type.Object(balanceQuery, strict),
    answers: {
      200: Type.Object({
        balances: Type.Array(
          Type.Object({ address: Type.String(), balance: Type.String(), chain: Type.String() }),
        ),
        ...deployedPaginationView,
        pagination_item: Type.Literal('balances'),
      }),
    },
    deployed: { differs: 'always empty: this network has no token balances' },
  },
  listCreditBalances: {
    ...listed,
    path: '/api/v0/credit_balances',
    summary: 'List the credits of every address, ordered by address',
    ...reads('INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    query: Type.Object(balanceQuery, strict),
    answers: {
      200: Type.Object({
        credit_balances: Type.Array(
          Type.Object({ address: Type.String(), credits: Type.Integer({ description: 'whole credits' }) }),
        ),
        pagination_per_page: Type.Integer(),
        pagination_page: Type.Optional(Type.Integer()),
        pagination_total: Type.Optional(Type.Integer()),
        pagination_item: Type.Literal('credit_balances'),
        next_cursor: NextCursor,
      }),
    },
    deployed: {},
  },
  getCreditSummary: {
    ...addressed,
    path: '/api/v0/addresses/:address/credit_history/summary',
    summary: 'Sum up a credit history',
    ...reads('INVALID_ADDRESS', 'LIST_TOO_COSTLY'),
    query: Type.Object(creditFilters, strict),
    answers: { 200: SummaryView },
    deployed: {},
  },
  listGranted: {
    ...addressed,
    path: '/api/v0/authorizations/granted/:address.json',
    tag: 'authorizations',
    summary: 'List the addresses that may act on behalf of an address',
    ...reads('INVALID_ADDRESS'),
    query: Type.Object({ grantee: text('only this address'), ...permits }, strict),
    answers: { 200: AuthorizationsView },
    deployed: {},
  },
  listReceived: {
    ...addressed,
    path: '/api/v0/authorizations/received/:address.json',
    tag: 'authorizations',
    summary: 'List the addresses on whose behalf an address may act',
    ...reads('INVALID_ADDRESS', 'LIST_TOO_COSTLY'),
    query: Type.Object({ granter: text('only this address'), ...permits }, strict),
    answers: { 200: AuthorizationsView },
    deployed: {},
  },
  listChannels: {
    ...listed,
    path: '/api/v0/channels/list.json',
    query: NO_PARAMETERS,
    summary: 'List all channels',
    ...reads('LIST_TOO_COSTLY'),
    answers: { 200: Type.Object({ channels: Type.Array(Type.String()) }) },
    deployed: {},
  },
} as const satisfies Api;
