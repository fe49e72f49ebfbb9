import { type ContractEvents, findGenesisHash, parseAbi, readContractEvents } from '@skerry/indexer';
import type pg from 'pg';
import { SYNC_EVENT_ABI } from './settings.ts';

/** Port: one contract's events as a chain has them now. Adapters: the indexer's tables (here), the simulator's chain. */
export interface ChainReader {
  /** The chain's first block; null before the first look. */
  findGenesisHash(): Promise<string | null>;
  /** Events from a block on, in one snapshot of the chain; undefined where nothing can be said. */
  readEvents(fromBlock: number, limit: number): Promise<ContractEvents | undefined>;
}

const [SYNC_EVENT] = parseAbi(SYNC_EVENT_ABI);

export const createIndexedChain = (pool: pg.Pool, network: string, contract: string): ChainReader => ({
  findGenesisHash: () => findGenesisHash(pool, network),
  readEvents: (fromBlock, limit) =>
    readContractEvents(pool, { network, contract, event: SYNC_EVENT! }, fromBlock, limit),
});
