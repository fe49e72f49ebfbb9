import type { ArgumentValues, Bounds, List } from '@skerry/indexer';
import {
  type Coverage,
  type Freshness,
  findFreshness,
  listCoverage,
  listEvents,
  listNetworkNames,
  listTransactions,
  parseArguments,
  parseCursor,
  stateOf,
} from '@skerry/indexer';
import type { Handlers } from '@skerry/kit';
import { AppError, parseEvmAddress } from '@skerry/protocol';
import type { INDEXER_API } from '@skerry/protocol/api/core/indexer';
import type { FastifyReply } from 'fastify';
import { type IndexRequest, listIndexRequests } from '../chains/index-requests.ts';
import { checkWeight, type Hold } from '../state/lists/weight.ts';
import { readAddress } from './address.ts';
import { pageOf, paginationOf } from './pagination.ts';
import type { Rooms } from './rooms.ts';

/** Throws INVALID_ADDRESS. */
const parseOptional = (text: string | undefined) => (text === undefined ? undefined : parseEvmAddress(text));

const ONE_ARGUMENT = /^args(?:\.(.+)|\[(.+)\])$/;

/** `args[to]=` and `args.to=` as members of the JSON that `args` takes. Throws INVALID_PARAMETERS. */
export async function gatherArgs({ query }: { query: unknown }): Promise<void> {
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
function parseArgs(text: string | undefined): ArgumentValues[] | undefined {
  if (text === undefined) return undefined;
  try {
    return parseArguments(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new AppError(
        'INVALID_PARAMETERS',
        'query.args must be JSON: an object of argument names and values, such as {"to":"0x..."}',
      );
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

const viewOfRequest = ({ itemHash, refusal, settledMs }: IndexRequest) => ({
  item_hash: itemHash,
  reason: refusal,
  settled_at: Math.floor(settledMs / 1000),
});

type Used = Pick<Rooms, 'db' | 'pool' | 'indexer' | 'now' | 'answers' | 'longLists'>;

/** What the index of a network is worth now: how far it is, and whether it goes on. */
const viewOfFreshness = ({ indexer, now }: Used, network: string, freshness: Freshness) => ({
  head: freshness.head,
  finalized: freshness.finalized,
  indexed: freshness.indexed,
  lag: freshness.lag,
  state: stateOf(freshness, indexer.stallMs(network), now()),
});

const viewOfNetwork = (used: Used, network: string, freshness: Freshness) => ({
  network,
  chain_id: freshness.chainId,
  ...viewOfFreshness(used, network, freshness),
  halt: freshness.halt,
  progress_at: Math.floor(freshness.progressAt.getTime() / 1000),
  calls: freshness.requests,
});

const viewOfList = <T>(used: Used, network: string, query: RangeQuery, list: List<T>) => ({
  pagination: { ...paginationOf(query, list.total), total_is_exact: list.totalIsExact },
  cursor: list.cursor,
  coverage: list.coverage.map(viewOfCoverage),
  ...viewOfFreshness(used, network, list.freshness),
});

async function unknownNetwork({ pool }: Used, network: string): Promise<AppError> {
  const networks = await listNetworkNames(pool);
  const list = networks.length === 0 ? 'it indexes none' : `it indexes ${networks.join(', ')}`;
  return new AppError('NETWORK_NOT_FOUND', `this node does not index ${JSON.stringify(network)}: ${list}`, {
    details: { networks },
  });
}

/** Who reads no network acts on no request: whoever waits for an answer waits in vain. Throws NETWORK_NOT_FOUND. */
function checkActs({ indexer }: Used): void {
  if (indexer.settings.networks.length > 0) return;
  throw new AppError(
    'NETWORK_NOT_FOUND',
    'this node reads no network, so it acts on no request to index a contract: send it to a node that does',
    { details: { networks: [] } },
  );
}

const cursorOf = ({ cursor }: RangeQuery) => (cursor === undefined ? undefined : parseCursor(cursor));

/** Takes what a page weighs from the share of whoever reads it. Throws LIST_TOO_COSTLY, RATE_LIMITED, OVERLOADED. */
const holdOf = ({ answers }: Used, reply: FastifyReply): Hold => {
  const hold = answers.of(reply);
  return (bytes) => {
    checkWeight(bytes, 'events');
    hold(bytes);
  };
};

/** How lists are read for whoever is answered. */
const readingOf = (used: Used, query: RangeQuery, reply: FastifyReply) => ({
  cursor: cursorOf(query),
  hold: holdOf(used, reply),
  turns: used.longLists.turnsOf(reply),
});

/** Indexed chains (specification, "Indexer"). */
export function indexerHandlers(used: Used): Handlers<typeof INDEXER_API> {
  const { indexer, pool } = used;
  return {
    async listNetworks() {
      const networks = [];
      for (const name of await listNetworkNames(pool))
        networks.push(viewOfNetwork(used, name, (await findFreshness(pool, name))!));
      return { networks };
    },
    async getNetwork({ params: { network } }) {
      const freshness = await findFreshness(pool, network);
      if (!freshness) throw await unknownNetwork(used, network);
      const contracts = await listCoverage(pool, freshness.networkId);
      const endpoints = indexer.report(network).map(({ rangeBlocks, ...one }) => ({
        ...one,
        range_blocks: rangeBlocks,
      }));
      return {
        ...viewOfNetwork(used, network, freshness),
        contracts: contracts.map(viewOfCoverage),
        endpoints,
      };
    },
    async listIndexRequests({ params: { address } }) {
      const owner = await readAddress(used.db, address);
      checkActs(used);
      const requests = await listIndexRequests(pool, owner);
      return { requests: requests.map(viewOfRequest) };
    },
    async listChainEvents({ params: { network }, query, reply }) {
      const filter = {
        ...parseBounds(query),
        contract: parseOptional(query.contract),
        eventName: query.event_name?.replaceAll(' ', ''),
        args: parseArgs(query.args),
      };
      const list = await listEvents(pool, network, filter, pageOf(query), readingOf(used, query, reply));
      if (!list) throw await unknownNetwork(used, network);
      return { events: list.items, ...viewOfList(used, network, query, list) };
    },
    async listChainTransactions({ params: { network }, query, reply }) {
      const filter = {
        ...parseBounds(query),
        address: parseOptional(query.address),
        from: parseOptional(query.from),
        to: parseOptional(query.to),
      };
      const reading = readingOf(used, query, reply);
      const list = await listTransactions(pool, network, filter, pageOf(query), reading);
      if (!list) throw await unknownNetwork(used, network);
      return { transactions: list.items, ...viewOfList(used, network, query, list) };
    },
  };
}
