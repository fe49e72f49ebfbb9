export { parseAbi } from './abi/declaration.ts';
export { hashText } from './abi/topic.ts';
export { asFields, parseQuantity } from './chain/shape.ts';
export { fetchHead } from './chain/source.ts';
export { type Indexer, openIndexer, startIndexer } from './indexer.ts';
export { watchIndexer } from './metrics.ts';
export { type ArgumentValues, parseArguments } from './read/arguments.ts';
export type { Bounds } from './read/bounds.ts';
export {
  type ContractEvent,
  type ContractEvents,
  findChain,
  type IndexedChain,
  readContractEvents,
} from './read/contract-events.ts';
export { parseCursor } from './read/cursor.ts';
export { listEvents } from './read/events.ts';
export type { List } from './read/list.ts';
export {
  type Coverage,
  type Freshness,
  findFreshness,
  listCoverage,
  listNetworkNames,
  stateOf,
} from './read/status.ts';
export { listTransactions } from './read/transactions.ts';
export { RpcError } from './rpc/failures.ts';
export { RpcPool } from './rpc/pool.ts';
export type { Call } from './rpc/transport.ts';
export {
  type IndexerSettings,
  loadIndexerSettings,
  type NetworkSettings,
  NO_NETWORKS,
  parseIndexerSettings,
} from './settings.ts';
