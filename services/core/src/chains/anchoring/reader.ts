import {
  type ContractEvents,
  findChain,
  type IndexedChain,
  parseAbi,
  readContractEvents,
} from '@skerry/indexer';
import type pg from 'pg';
import { SYNC_EVENT_ABI } from './settings.ts';

/** Port: one contract's events as a chain has them now. Adapters: the indexer's tables (here), the simulator's chain. */
export interface ChainReader {
  /** Undefined where nothing can be said. */
  findChain(): Promise<IndexedChain | undefined>;
  /** Events from a block on, in one snapshot of the chain; undefined where nothing can be said. */
  readEvents(fromBlock: number, limit: number): Promise<ContractEvents | undefined>;
}

const [SYNC_EVENT] = parseAbi(SYNC_EVENT_ABI);

export const createIndexedChain = (pool: pg.Pool, network: string, contract: string): ChainReader => ({
  findChain: () => findChain(pool, network),
  readEvents: (fromBlock, limit) =>
    readContractEvents(pool, { network, contract, event: SYNC_EVENT! }, fromBlock, limit),
});
