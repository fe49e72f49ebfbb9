import { inTransaction } from '@skerry/database';
import type pg from 'pg';
import { topicOf } from '../abi/topic.ts';
import { type EventDefinition, signatureOf } from '../abi/types.ts';
import { findNetwork } from '../store/networks.ts';
import { tableOf } from '../store/partitions.ts';
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

/** Text of arguments with which a look ends at the next block: anybody may have a contract write logs of any length. */
const LOOK_BYTES = 32 * 1024 * 1024;

/** Whoever asked for the contract first names the values as they like: they are told by their places. */
function named(
  args: ContractEvent['args'],
  from: EventDefinition,
  to: EventDefinition,
): ContractEvent['args'] {
  return Object.fromEntries(to.parameters.map(({ name }, at) => [name, args[from.parameters[at]!.name]]));
}

interface Stretch {
  readonly networkId: number;
  readonly contractId: number;
  readonly fromBlock: number;
  readonly toBlock: number;
}

/** Oldest first, up to the block with which there are enough of them. */
async function readStretch(
  client: pg.PoolClient,
  event: EventDefinition,
  { networkId, contractId, fromBlock, toBlock }: Stretch,
  limit: number,
): Promise<Pick<ContractEvents, 'events'> & { readonly readTo: number }> {
  // Of several declarations of the signature each is another row of the types, and most have no log: anybody declares any number.
  const { rows: types } = await client.query<{ id: number }>(
    `select id from (select distinct event_id as id from indexer_spans where network_id = $2 and contract_id = $3) s
     where exists (select from indexer_event_types t
       where t.id = s.id and t.signature = $1 and not (t.definition ->> 'anonymous')::boolean)`,
    [signatureOf(event), networkId, contractId],
  );
  const table = tableOf('events', networkId);
  type Row = ContractEvent & { readonly definition: EventDefinition; readonly cut: number | null };
  const { rows } = await client.query<Row>(
    `with weighed as (
       select block_number, row_number() over w as place, sum(octet_length(args::text)) over w as bytes
       from (
         select block_number, log_index, args from ${table}
         where contract_id = $1 and event_id = any($5) and block_number between $2 and $3
         order by block_number, log_index limit $4::bigint + 1) e
       window w as (order by block_number, log_index)),
     ending as (select min(block_number) as block from weighed where place > $4 or bytes > $6)
     select block_number as "blockNumber", log_index as "logIndex",
       '0x' || encode(transaction_hash, 'hex') as "transactionHash", "timestamp", t.name, args, t.definition,
       (select block from ending) as cut
     from ${table} e join indexer_event_types t on t.id = e.event_id
     where contract_id = $1 and event_id = any($5) and block_number between $2 and coalesce((select block from ending), $3)
     order by block_number, log_index`,
    [contractId, fromBlock, toBlock, limit, types.map(({ id }) => id), LOOK_BYTES],
  );
  const events = rows.map(({ definition, cut: _, ...row }) => ({
    ...row,
    args: named(row.args, definition, event),
  }));
  return { events, readTo: rows[0]?.cut ?? toBlock };
}

/**
 * One event of a contract from a block on, oldest first, in one snapshot of the chain; whole blocks, and no more of them
 * once there are `limit` of it, or their text is of 32 MiB. Undefined where the network is not known, halted, or does not have
 * the event. What else is asked of the contract, and for blocks before, changes nothing.
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
      const stretch = { networkId: row.id, contractId, fromBlock, toBlock };
      const { events, readTo } = await readStretch(client, event, stretch, limit);
      const isCut = readTo < toBlock;
      return { ...nothing, events, readTo, isCut, settledTo: Math.min(row.floor, readTo) };
    },
    SNAPSHOT,
  );
}

/** Undefined where the network is not known. */
export const findChain = (pool: pg.Pool, network: string): Promise<IndexedChain | undefined> =>
  findNetwork(pool, network);
