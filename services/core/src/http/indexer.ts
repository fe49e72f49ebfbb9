import type { HttpServer } from '@skerry/kit';
import { AppError, PaginationView, parseEvmAddress } from '@skerry/protocol';
import Type from 'typebox';
import { parseArguments } from '../indexer/read/arguments.ts';
import type { Bounds } from '../indexer/read/bounds.ts';
import { parseCursor } from '../indexer/read/cursor.ts';
import { listEvents } from '../indexer/read/events.ts';
import type { List } from '../indexer/read/list.ts';
import {
  type Coverage,
  type Freshness,
  findFreshness,
  listCoverage,
  listNetworkNames,
  stateOf,
} from '../indexer/read/status.ts';
import { listTransactions } from '../indexer/read/transactions.ts';
import { reads } from './declare.ts';
import { pageOf, pageQuery, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';

/** Text that the database can hold. */
const NO_NUL = '^[^\\u0000]*$';
const Params = Type.Object({ network: Type.String({ maxLength: 64, pattern: NO_NUL }) });
const whole = () => Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));
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
  from_block: whole(),
  to_block: whole(),
  from_timestamp: whole(),
  to_timestamp: whole(),
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

const orNull = <T extends Type.TSchema>(type: T) => Type.Union([type, Type.Null()]);

/** What every list says of how true it is. */
const freshnessView = {
  head: orNull(Type.Integer({ description: 'newest block of the chain; null before the first look' })),
  finalized: orNull(Type.Integer({ description: 'newest block that cannot be taken back any more' })),
  indexed: orNull(Type.Integer({ description: 'up to this block everything that is asked for is read' })),
  lag: orNull(Type.Integer({ description: 'blocks between indexed and head' })),
  state: Type.String({ description: 'live, catching_up, stalled or halted' }),
};

const CoverageView = Type.Object({
  contract: Type.String(),
  kind: Type.String({ description: 'events or transactions' }),
  from_block: Type.Integer(),
  to_block: orNull(Type.Integer({ description: 'null where nothing is read yet' })),
  live: Type.Boolean({ description: 'follows the head' }),
});

const listView = {
  pagination: Type.Object({
    ...PaginationView.properties,
    total_is_exact: Type.Boolean({ description: 'false: there are at least `total`' }),
  }),
  cursor: orNull(Type.String({ description: 'for the next page; null after the last one' })),
  coverage: Type.Array(CoverageView, {
    description: 'what is read of the contract that the query names; empty where it is not indexed',
  }),
  ...freshnessView,
};

const EventView = Type.Object({
  transaction_hash: Type.String(),
  block_number: Type.Integer(),
  log_index: Type.Integer(),
  contract: Type.String(),
  event_name: Type.String({ description: 'empty where the log fits none of the declared events' }),
  event_signature: Type.String(),
  args: Type.Record(Type.String(), Type.Unknown()),
  timestamp: Type.Integer({ description: 'Unix seconds' }),
});

const TransactionView = Type.Object({
  hash: Type.String(),
  block_number: Type.Integer(),
  from: Type.String(),
  to: orNull(Type.String({ description: 'null where a contract was made' })),
  value: Type.String({ description: 'wei' }),
  gas: Type.Integer(),
  gas_price: Type.String({ description: 'wei' }),
  timestamp: Type.Integer({ description: 'Unix seconds' }),
});

const NetworkView = Type.Object({
  network: Type.String(),
  chain_id: Type.Integer(),
  ...freshnessView,
  halt: orNull(Type.Object({ code: Type.String(), message: Type.String() })),
  progress_at: Type.Integer({ description: 'Unix seconds' }),
  calls: Type.Integer({ description: 'RPC calls made so far' }),
});

const StatusView = Type.Object({
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
    { description: 'of the process that answers; empty where another one indexes the network' },
  ),
});

/** Throws INVALID_ADDRESS. */
const parseOptional = (text: string | undefined) => (text === undefined ? undefined : parseEvmAddress(text));

const ONE_ARGUMENT = /^args(?:\.(.+)|\[(.+)\])$/;

/** `args[to]=` and `args.to=` as members of the JSON that `args` takes. Throws INVALID_PARAMETERS. */
async function gatherArgs({ query }: { query: unknown }): Promise<void> {
  const given = query as Record<string, unknown>;
  const members: Record<string, unknown> = Object.create(null);
  for (const [key, value] of Object.entries(given)) {
    const match = ONE_ARGUMENT.exec(key);
    if (!match) continue;
    const name = (match[1] ?? match[2])!;
    if (typeof value !== 'string' || name in members || 'args' in given)
      throw new AppError('INVALID_PARAMETERS', `query.args says ${JSON.stringify(name)} twice`);
    members[name] = value === 'true' || value === 'false' ? value === 'true' : value;
    delete given[key];
  }
  if (Object.keys(members).length > 0) given.args = JSON.stringify(members);
}

/** Throws INVALID_PARAMETERS. */
function parseArgs(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  try {
    return parseArguments(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) throw new AppError('INVALID_PARAMETERS', 'query.args is not JSON');
    throw error;
  }
}

interface RangeQuery {
  readonly page: number;
  readonly limit: number;
  readonly cursor?: string;
  readonly from_block?: number;
  readonly to_block?: number;
  readonly from_timestamp?: number;
  readonly to_timestamp?: number;
}

/** Throws INVALID_PARAMETERS for a range that ends before it begins. */
function parseBounds(query: RangeQuery): Bounds {
  for (const what of ['block', 'timestamp'] as const) {
    const [from, to] = [query[`from_${what}`], query[`to_${what}`]];
    if (from !== undefined && to !== undefined && from > to)
      throw new AppError('INVALID_PARAMETERS', `query.from_${what} is greater than query.to_${what}`);
  }
  return {
    fromBlock: query.from_block,
    toBlock: query.to_block,
    fromTimestamp: query.from_timestamp,
    toTimestamp: query.to_timestamp,
  };
}

const viewOfCoverage = ({ contract, kind, fromBlock, toBlock, live }: Coverage) => ({
  contract,
  kind,
  from_block: fromBlock,
  to_block: toBlock,
  live,
});

/** Indexed chains (specification, "Indexer"). */
export async function indexerRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const pool = () => rooms.indexer.pool;

  const unknown = async (network: string): Promise<AppError> => {
    const networks = await listNetworkNames(pool());
    const list = networks.length === 0 ? 'it indexes none' : `it indexes ${networks.join(', ')}`;
    return new AppError('NETWORK_NOT_FOUND', `this node does not index ${JSON.stringify(network)}: ${list}`, {
      details: { networks },
    });
  };

  const viewOfFreshness = (network: string, freshness: Freshness) => ({
    head: freshness.head,
    finalized: freshness.finalized,
    indexed: freshness.indexed,
    lag: freshness.lag,
    state: stateOf(freshness, rooms.indexer.stallMs(network), rooms.now()),
  });

  const viewOfNetwork = (network: string, freshness: Freshness) => ({
    network,
    chain_id: freshness.chainId,
    ...viewOfFreshness(network, freshness),
    halt: freshness.halt,
    progress_at: Math.floor(freshness.progressAt.getTime() / 1000),
    calls: freshness.requests,
  });

  const viewOfList = <T>(network: string, query: RangeQuery, list: List<T>) => ({
    pagination: { ...paginationOf(query, list.total), total_is_exact: list.totalIsExact },
    cursor: list.cursor,
    coverage: list.coverage.map(viewOfCoverage),
    ...viewOfFreshness(network, list.freshness),
  });

  app.get(
    '/indexer',
    {
      schema: {
        summary: 'Chains that this node indexes',
        response: { 200: Type.Object({ networks: Type.Array(NetworkView) }) },
      },
      config: reads(),
    },
    async () => {
      const names = await listNetworkNames(pool());
      const networks = [];
      for (const name of names) networks.push(viewOfNetwork(name, (await findFreshness(pool(), name))!));
      return { networks };
    },
  );

  app.get(
    '/indexer/:network',
    {
      schema: { summary: 'How far a chain is indexed', params: Params, response: { 200: StatusView } },
      config: reads('NETWORK_NOT_FOUND'),
    },
    async ({ params: { network } }) => {
      const freshness = await findFreshness(pool(), network);
      if (!freshness) throw await unknown(network);
      const contracts = await listCoverage(pool(), freshness.networkId);
      const endpoints = rooms.indexer.report(network).map(({ rangeBlocks, ...one }) => ({
        ...one,
        range_blocks: rangeBlocks,
      }));
      return { ...viewOfNetwork(network, freshness), contracts: contracts.map(viewOfCoverage), endpoints };
    },
  );

  app.get(
    '/indexer/:network/events',
    {
      schema: {
        summary: 'Events of indexed contracts, newest first',
        params: Params,
        querystring: EventsQuery,
        response: { 200: Type.Object({ events: Type.Array(EventView), ...listView }) },
      },
      preValidation: gatherArgs,
      config: reads('NETWORK_NOT_FOUND', 'INVALID_ADDRESS', 'INVALID_CURSOR', 'CURSOR_REORGED'),
    },
    async ({ params: { network }, query }) => {
      const filter = {
        ...parseBounds(query),
        contract: parseOptional(query.contract),
        eventName: query.event_name?.replaceAll(' ', ''),
        args: parseArgs(query.args),
      };
      const cursor = query.cursor === undefined ? undefined : parseCursor(query.cursor);
      const list = await listEvents(pool(), network, filter, pageOf(query), cursor);
      if (!list) throw await unknown(network);
      return { events: list.items, ...viewOfList(network, query, list) };
    },
  );

  app.get(
    '/indexer/:network/transactions',
    {
      schema: {
        summary: 'Transactions of indexed addresses, newest first',
        params: Params,
        querystring: TransactionsQuery,
        response: { 200: Type.Object({ transactions: Type.Array(TransactionView), ...listView }) },
      },
      config: reads('NETWORK_NOT_FOUND', 'INVALID_ADDRESS', 'INVALID_CURSOR', 'CURSOR_REORGED'),
    },
    async ({ params: { network }, query }) => {
      const filter = {
        ...parseBounds(query),
        address: parseOptional(query.address),
        from: parseOptional(query.from),
        to: parseOptional(query.to),
      };
      const cursor = query.cursor === undefined ? undefined : parseCursor(query.cursor);
      const list = await listTransactions(pool(), network, filter, pageOf(query), cursor);
      if (!list) throw await unknown(network);
      return { transactions: list.items, ...viewOfList(network, query, list) };
    },
  );
}
