import { inTransaction } from '@skerry/database';
import type pg from 'pg';
import { topicOf } from '../abi/topic.ts';
import { type EventDefinition, signatureOf } from '../abi/types.ts';
import { findNetwork } from '../store/networks.ts';
import { SNAPSHOT } from './list.ts';
import { listCoverage } from './status.ts';

/** An event of one contract as the chain has it. */
export interface ContractEvent {
  readonly blockNumber: number;
  readonly logIndex: number;
  readonly transactionHash: string;
  /** Of the block, Unix seconds. */
  readonly timestamp: number;
  readonly name: string;
  /** By the names that the reader gives them. */
  readonly args: Readonly<Record<string, unknown>>;
}

/** Which chain an index is of. */
export interface IndexedChain {
  /** The chain's first block, by which it is known; null before the first look. */
  readonly genesisHash: string | null;
  /** Another one than before: everything is read anew, since what was read before was not what the chain has. */
  readonly reading: string;
}

export interface ContractEvents extends IndexedChain {
  readonly events: readonly ContractEvent[];
  /** Everything up to this block is in `events`; null where nothing is read yet. */
  readonly readTo: number | null;
  /** The same with what comes after them; null where nothing is read yet. */
  readonly coveredTo: number | null;
  /** Nothing up to this block ever changes. */
  readonly settledTo: number;
  /** Everything is in `coveredTo` up to the tip of what is read of the chain. */
  readonly isAtTip: boolean;
  /** There is more after `readTo`. */
  readonly isCut: boolean;
  /** The newest block that any endpoint has shown. */
  readonly head: number | null;
  /** RPC calls as counted with the head: where there are more than before, it was looked at meanwhile. */
  readonly requests: number;
}

/** Which event of which contract. */
interface EventSource {
  readonly network: string;
  /** Lower case. */
  readonly contract: string;
  /** Not an anonymous one. */
  readonly event: EventDefinition;
}

/** Whoever asked for the contract first names the values as they like: they are told by their places. */
function named(
  args: ContractEvent['args'],
  from: EventDefinition,
  to: EventDefinition,
): ContractEvent['args'] {
  return Object.fromEntries(to.parameters.map(({ name }, at) => [name, args[from.parameters[at]!.name]]));
}

/**
 * One event of a contract from a block on, oldest first, in one snapshot of the chain; whole blocks, and no more of them
 * once there are `limit` of it. Undefined where the network is not known, halted, or does not have the event. What else is
 * asked of the contract, and for blocks before, changes nothing.
 */
export async function readContractEvents(
  pool: pg.Pool,
  { network, contract, event }: EventSource,
  fromBlock: number,
  limit: number,
): Promise<ContractEvents | undefined> {
  return inTransaction(
    pool,
    async (client) => {
      const row = await findNetwork(client, network);
      if (!row || row.haltCode !== null) return undefined;
      const asked = { address: contract, topics: new Set([topicOf(event)]), fromBlock };
      const coverage = (await listCoverage(client, row.id, asked)).find(({ kind }) => kind === 'events');
      if (!coverage) return undefined;
      const { contractId, toBlock } = coverage;
      const nothing = {
        events: [],
        readTo: toBlock,
        coveredTo: toBlock,
        isAtTip: toBlock !== null && toBlock === row.tipNumber,
        isCut: false,
        head: row.head,
        requests: row.requests,
        genesisHash: row.genesisHash,
        reading: row.reading,
      };
      if (toBlock === null) return { ...nothing, settledTo: -1 };
      // Of several declarations of the signature each is another row of the types.
      const { rows: types } = await client.query<{ id: number }>(
        `select id from indexer_event_types where signature = $1 and not (definition ->> 'anonymous')::boolean`,
        [signatureOf(event)],
      );
      const eventIds = types.map(({ id }) => id);
      const { rows } = await client.query<ContractEvent & { definition: EventDefinition }>(
        `select block_number as "blockNumber", log_index as "logIndex",
           '0x' || encode(transaction_hash, 'hex') as "transactionHash", "timestamp", t.name, args, t.definition
         from indexer_events_n${row.id} e join indexer_event_types t on t.id = e.event_id
         where contract_id = $1 and event_id = any($5) and block_number between $2 and least($3::bigint, coalesce((
           select block_number from indexer_events_n${row.id}
           where contract_id = $1 and event_id = any($5) and block_number >= $2
           order by block_number, log_index offset $4 limit 1), $3))
         order by block_number, log_index`,
        [contractId, fromBlock, toBlock, limit, eventIds],
      );
      const last = rows.at(-1)?.blockNumber;
      const isCut = rows.length > limit && last !== undefined && last < toBlock;
      const readTo = isCut ? last : toBlock;
      const events = rows.map(({ definition, ...row }) => ({
        ...row,
        args: named(row.args, definition, event),
      }));
      return { ...nothing, events, readTo, isCut, settledTo: Math.min(row.floor, readTo) };
    },
    SNAPSHOT,
  );
}

/** Undefined where the network is not known. */
export const findChain = (pool: pg.Pool, network: string): Promise<IndexedChain | undefined> =>
  findNetwork(pool, network);
