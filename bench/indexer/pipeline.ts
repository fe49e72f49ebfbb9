import { inTransaction, openPool } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { parseDeclaration } from '../../packages/indexer/src/abi/declaration.ts';
import { DecodePool } from '../../packages/indexer/src/decode/pool.ts';
import type { RowBatch } from '../../packages/indexer/src/decode/rows.ts';
import { sendCalls } from '../../packages/indexer/src/rpc/transport.ts';
import { createNetworkTables, Partitions } from '../../packages/indexer/src/store/partitions.ts';
import { copyRows } from '../../packages/indexer/src/store/rows.ts';
import { TRANSFER } from '../../packages/indexer/src/testing/contracts.ts';
import { TOKEN, TRANSFER_TOPIC } from '../../packages/indexer/src/testing/setup.ts';

/**
 * The least that a process does that indexes a chain: `pipeline.ts DATABASE_URL RPC_URL HEAD`. It asks for logs ahead, decodes
 * them on a thread, writes them in order and makes the indexes; it follows nothing, checks no header and keeps no progress.
 */
const [connectionString, rpcUrl, lastBlock] = process.argv.slice(2);
const head = Number(lastBlock);
const RANGE_BLOCKS = 10;
const AHEAD = 4;
const PARTITION_BLOCKS = 1_000_000;
const signal = new AbortController().signal;
const events = [{ id: 1, definition: parseDeclaration(TRANSFER) }];
const claims = [{ contractId: 1, address: TOKEN, topics: [TRANSFER_TOPIC], events, fromBlock: 0 }];
const log = createLogger('bench', 'silent');
await using database = await openPool({ connectionString: connectionString! }, { log, connectionsMax: 2 });
const { pool } = database;
await using decode = new DecodePool(1);
await pool.query(`insert into indexer_networks (name, chain_id) values ('bench', 1)`);
await createNetworkTables(pool, 1);
const partitions = new Partitions(pool, 1, PARTITION_BLOCKS);
await partitions.ensure('events', 0, head);

async function read(from: number): Promise<RowBatch> {
  const to = Math.min(head, from + RANGE_BLOCKS - 1);
  const filter = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}`, address: [TOKEN] };
  const body = await sendCalls(rpcUrl!, [{ method: 'eth_getLogs', params: [filter] }], {
    timeoutMs: 60_000,
    signal,
  });
  const task = { body, from, to, headers: [], known: [], claims, claimsKey: 'bench', blooms: false };
  const result = await decode.read(task);
  if (!result.ok || result.missing.length > 0) throw new Error('the chain could not be read');
  return result.batch;
}

const ahead: Promise<RowBatch>[] = [];
for (let next = 0; next <= head || ahead.length > 0; ) {
  for (; next <= head && ahead.length < AHEAD; next += RANGE_BLOCKS) ahead.push(read(next));
  const batch = await ahead.shift()!;
  await inTransaction(pool, (client) => copyRows(client, 'events', 1, batch));
}
await partitions.finish();
