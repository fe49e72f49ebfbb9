import { type Static, Type } from '../../type.ts';
import { PaginationView } from '../../views.ts';
import { type Api, NO_PARAMETERS, orNull } from '../operation.ts';
import { wholeUnixSeconds } from './common/dates.ts';
import { reads } from './common/declare.ts';
import { pageQuery } from './common/pagination.ts';
import { Address } from './credits.ts';

/** Text that the database can hold. */
const NO_NUL = '^[^\\u0000]*$';
const Params = Type.Object({
  network: Type.String({
    maxLength: 64,
    pattern: NO_NUL,
    description: 'a network that the node indexes, such as ethereum',
  }),
});
const whole = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description }));
const address = (description: string) =>
  Type.Optional(
    Type.String({ description: `${description}; upper and lower case mean the same`, maxLength: 64 }),
  );

const rangeQuery = {
  ...pageQuery,
  cursor: Type.Optional(
    Type.String({
      description: 'of an earlier page: goes on behind it, `page` is not used then',
      maxLength: 128,
    }),
  ),
  from_block: whole('from this block on'),
  to_block: whole('up to this block, included'),
  from_timestamp: wholeUnixSeconds('from this time on'),
  to_timestamp: wholeUnixSeconds('up to this time, included'),
};

const EventsQuery = Type.Object(
  {
    ...rangeQuery,
    contract: address('the contract that emitted the event'),
    event_name: Type.Optional(
      Type.String({
        description: 'a name, or a signature: Transfer(address,address,uint256)',
        pattern: NO_NUL,
        maxLength: 8192,
      }),
    ),
    args: Type.Optional(
      Type.String({
        description:
          'a JSON object: every value named in it has to be that one; `args.NAME=` and `args[NAME]=` say one each',
        maxLength: 16_384,
      }),
    ),
  },
  { additionalProperties: false },
);

const TransactionsQuery = Type.Object(
  {
    ...rangeQuery,
    address: address('sender or receiver'),
    from: address('sender'),
    to: address('receiver'),
  },
  { additionalProperties: false },
);

/** What every list says of how true it is. */
const freshnessView = {
  head: orNull(Type.Integer({ description: 'newest block of the chain; null before the first look' })),
  finalized: orNull(Type.Integer({ description: 'what has been read up to this block is final' })),
  indexed: orNull(Type.Integer({ description: 'everything requested up to this block has been read' })),
  lag: orNull(Type.Integer({ description: 'blocks between indexed and head' })),
  state: Type.String({
    description:
      'live, catching_up, stalled, halted, or not_read: the node does not read the network any more',
  }),
};

const CoverageView = Type.Object(
  {
    contract: Type.String(),
    kind: Type.String({ description: 'events or transactions' }),
    from_block: Type.Integer(),
    to_block: orNull(Type.Integer({ description: 'null before the first read' })),
    live: Type.Boolean({ description: 'keeps up with the newest block' }),
  },
  { title: 'Coverage' },
);

const listView = {
  pagination: Type.Object({
    ...PaginationView.properties,
    total_is_exact: Type.Boolean({ description: 'false: there are at least `total`' }),
  }),
  cursor: orNull(Type.String({ description: 'for the next page; null after the last one' })),
  coverage: Type.Array(CoverageView, {
    description:
      'what is indexed of the contract and the event in the query, from `from_block` on; empty if nobody asked for it',
  }),
  ...freshnessView,
};

export const EventView = Type.Object(
  {
    transaction_hash: Type.String(),
    block_number: Type.Integer(),
    log_index: Type.Integer(),
    contract: Type.String(),
    event_name: Type.String({ description: 'empty if the log fits no declaration of an event' }),
    event_signature: Type.String(),
    event_parameters: Type.Array(Type.String(), {
      description:
        "names of the arguments in the declaration's order: the names are whoever's who declared the event, the order is the contract's",
    }),
    args: Type.Record(Type.String(), Type.Unknown()),
    timestamp: Type.Integer({ description: 'Unix seconds' }),
  },
  { title: 'ChainEvent' },
);
export type EventView = Static<typeof EventView>;

const TransactionView = Type.Object(
  {
    hash: Type.String(),
    block_number: Type.Integer(),
    from: Type.String(),
    to: orNull(Type.String({ description: 'null if a contract was created' })),
    value: Type.String({ description: 'wei' }),
    gas: Type.Integer(),
    gas_price: Type.String({ description: 'wei' }),
    timestamp: Type.Integer({ description: 'Unix seconds' }),
  },
  { title: 'ChainTransaction' },
);

const IndexRequestView = Type.Object(
  {
    item_hash: Type.String({ description: 'of the POST message' }),
    reason: orNull(Type.Object({ code: Type.String(), message: Type.String() }), {
      description: 'why it was refused; null: it was done',
    }),
    settled_at: Type.Integer({ description: 'Unix seconds' }),
  },
  { title: 'IndexRequest' },
);
export type IndexRequestView = Static<typeof IndexRequestView>;

export const NetworkView = Type.Object(
  {
    network: Type.String(),
    chain_id: Type.Integer(),
    ...freshnessView,
    halt: orNull(Type.Object({ code: Type.String(), message: Type.String() })),
    progress_at: Type.Integer({ description: 'Unix seconds' }),
    calls: Type.Integer({ description: 'RPC calls made so far' }),
  },
  { title: 'IndexedNetwork' },
);
export type NetworkView = Static<typeof NetworkView>;

export const NetworkStatusView = Type.Object(
  {
    ...NetworkView.properties,
    contracts: Type.Array(CoverageView),
    endpoints: Type.Array(
      Type.Object({
        name: Type.String(),
        requests: Type.Integer(),
        calls: Type.Integer(),
        failures: Type.Record(Type.String(), Type.Integer()),
        head: orNull(Type.Integer()),
        range_blocks: Type.Integer(),
        concurrency: Type.Integer(),
        resting: Type.Boolean(),
      }),
      { description: 'of the answering process; empty if another process indexes the network' },
    ),
  },
  { title: 'IndexedNetworkStatus' },
);
export type NetworkStatusView = Static<typeof NetworkStatusView>;

const LIST_ERRORS = [
  'NETWORK_NOT_FOUND',
  'INVALID_ADDRESS',
  'INVALID_CURSOR',
  'CURSOR_REORGED',
  'LIST_TOO_COSTLY',
] as const;

/** Indexed chains (specification, "Indexer"; docs/indexer.md). */
export const INDEXER_API = {
  listNetworks: {
    method: 'GET',
    path: '/api/v0/indexer',
    query: NO_PARAMETERS,
    summary: 'List the chains this node indexes',
    ...reads(),
    answers: { 200: Type.Object({ networks: Type.Array(NetworkView) }) },
  },
  getNetwork: {
    method: 'GET',
    path: '/api/v0/indexer/:network',
    query: NO_PARAMETERS,
    summary: 'Get how far a chain is indexed',
    ...reads('NETWORK_NOT_FOUND'),
    params: Params,
    answers: { 200: NetworkStatusView },
  },
  listIndexRequests: {
    method: 'GET',
    path: '/api/v0/addresses/:address/index_requests',
    tag: 'indexer',
    summary: 'List what became of signed requests to index contracts, newest first',
    ...reads('INVALID_ADDRESS', 'NETWORK_NOT_FOUND'),
    params: Type.Object({ address: Address }),
    query: NO_PARAMETERS,
    answers: {
      200: Type.Object({
        requests: Type.Array(IndexRequestView, {
          description: 'the newest 100 of the last day; one that is not listed has not been read yet',
        }),
      }),
    },
  },
  listChainEvents: {
    method: 'GET',
    path: '/api/v0/indexer/:network/events',
    summary: 'List events of indexed contracts, newest first',
    ...reads(...LIST_ERRORS),
    params: Params,
    query: EventsQuery,
    answers: { 200: Type.Object({ events: Type.Array(EventView), ...listView }, { title: 'ChainEvents' }) },
  },
  listChainTransactions: {
    method: 'GET',
    path: '/api/v0/indexer/:network/transactions',
    summary: 'List transactions of indexed addresses, newest first',
    ...reads(...LIST_ERRORS),
    params: Params,
    query: TransactionsQuery,
    answers: {
      200: Type.Object(
        { transactions: Type.Array(TransactionView), ...listView },
        { title: 'ChainTransactions' },
      ),
    },
  },
} as const satisfies Api;
