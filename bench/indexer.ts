import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@skerry/kit';
import { openPool } from '../services/core/src/db/connect.ts';
import { createTestDatabase, databaseUrlOf } from '../services/core/src/db/testing.ts';
import { startTestServer } from '../services/core/src/db/testing-server.ts';
import { parseDeclaration } from '../services/core/src/indexer/abi/declaration.ts';
import { type RangeTask, readRange } from '../services/core/src/indexer/decode/range.ts';
import { startIndexer } from '../services/core/src/indexer/indexer.ts';
import { listEvents } from '../services/core/src/indexer/read/events.ts';
import { findFreshness } from '../services/core/src/indexer/read/status.ts';
import { sendCalls } from '../services/core/src/indexer/rpc/transport.ts';
import { createNetworkTables, Partitions } from '../services/core/src/indexer/store/partitions.ts';
import { copyRows } from '../services/core/src/indexer/store/rows.ts';
import { inTransaction } from '../services/core/src/indexer/store/transaction.ts';
import type { Anvil } from '../services/core/src/indexer/testing/anvil.ts';
import { TRANSFER } from '../services/core/src/indexer/testing/contracts.ts';
import {
  createIndexerDatabase,
  NETWORK,
  networkSettings,
  TOKEN,
  TRANSFER_TOPIC,
  word,
} from '../services/core/src/indexer/testing/setup.ts';
import { makeChain } from './indexer-chain.ts';
import { readRss, runPonder } from './indexer-ponder.ts';

const DEFAULT_EVENTS = 1_000_000;
const RANGE_BLOCKS = 10;
const PARTITION_BLOCKS = 1_000_000;
const QUERY_ROUNDS = 40;
const POLL_MS = 50;
const log = createLogger('bench', 'warn');
const rate = (events: number, seconds: number): string => `${(events / seconds / 1000).toFixed(1)} k/s`;

interface Stage {
  readonly name: string;
  readonly seconds: number;
}

/** What the three parts take by themselves, one after another on one core each: nobody can be faster than the slowest. */
async function measureLimits(anvil: Anvil, serverUrl: string): Promise<Stage[]> {
  const head = await anvil.head();
  const bodies: { body: Uint8Array; from: number; to: number }[] = [];
  const signal = new AbortController().signal;
  let startMs = performance.now();
  for (let from = 0; from <= head; from += RANGE_BLOCKS) {
    const to = Math.min(head, from + RANGE_BLOCKS - 1);
    const filter = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}`, address: [TOKEN] };
    const body = await sendCalls(anvil.url, [{ method: 'eth_getLogs', params: [filter] }], {
      timeoutMs: 60_000,
      signal,
    });
    bodies.push({ body, from, to });
  }
  const rpc = (performance.now() - startMs) / 1000;
  startMs = performance.now();
  const events = [{ id: 1, definition: parseDeclaration(TRANSFER) }];
  const claims = [{ contractId: 1, address: TOKEN, topics: [TRANSFER_TOPIC], events, fromBlock: 0 }];
  const batches = bodies.map((part) => {
    const task: RangeTask = { ...part, headers: [], known: [], claims, claimsKey: 'bench', blooms: false };
    const result = readRange(task);
    if (!result.ok || result.missing.length > 0) throw new Error('the chain could not be read');
    return result.batch;
  });
  const decode = (performance.now() - startMs) / 1000;
  await using database = await createIndexerDatabase(serverUrl);
  const { pool } = database;
  await pool.query(`insert into indexer_networks (name, chain_id) values ('bench', 1)`);
  await createNetworkTables(pool, 1);
  startMs = performance.now();
  const partitions = new Partitions(pool, 1, PARTITION_BLOCKS);
  await partitions.ensure('events', 0, head);
  for (const batch of batches) await inTransaction(pool, (client) => copyRows(client, 'events', 1, batch));
  const copy = (performance.now() - startMs) / 1000;
  startMs = performance.now();
  await partitions.finish();
  const index = (performance.now() - startMs) / 1000;
  return [
    { name: 'RPC delivery, one request at a time', seconds: rpc },
    { name: 'decoding, one thread', seconds: decode },
    { name: 'COPY', seconds: copy },
    { name: 'making the indexes', seconds: index },
  ];
}

async function measureQueries(pool: Parameters<typeof listEvents>[0], head: number): Promise<void> {
  const page = { limit: 20, offset: 0 };
  const block = () => Math.floor(Math.random() * head);
  const filters: readonly (readonly [string, () => Parameters<typeof listEvents>[2]])[] = [
    ['no filter', () => ({})],
    ['contract', () => ({ contract: TOKEN })],
    ['contract, event_name', () => ({ contract: TOKEN, eventName: 'Transfer' })],
    [
      'event_name, from_block, to_block',
      () => ({ eventName: 'Transfer', fromBlock: (block() / 2) | 0, toBlock: head - 1 }),
    ],
    [
      'contract, from_timestamp',
      () => ({ contract: TOKEN, fromTimestamp: Math.floor(Date.now() / 1000) - 60 }),
    ],
    [
      'args (about 15 of a million)',
      () => ({ args: [JSON.stringify({ to: `0x${word(block() * 61).slice(26)}` })] }),
    ],
    [
      'args (about 244 of a million)',
      () => ({ args: [JSON.stringify({ from: `0x${word(block() % 4096).slice(26)}` })] }),
    ],
  ];
  for (const [name, make] of filters) {
    const times: number[] = [];
    for (let round = 0; round < QUERY_ROUNDS; round++) {
      const startMs = performance.now();
      await listEvents(pool, NETWORK, make(), page);
      times.push(performance.now() - startMs);
    }
    const sorted = times.toSorted((a, b) => a - b);
    const p95 = sorted[Math.floor(QUERY_ROUNDS * 0.95)]!;
    console.log(
      `  ${name.padEnd(40)} p50 ${sorted[QUERY_ROUNDS >> 1]!.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`,
    );
  }
}

/** From an empty database until the last event is queryable and every index is there. */
async function runOurs(anvil: Anvil, databaseUrl: string): Promise<{ seconds: number; peakBytes: number }> {
  await using database = await openPool({ connectionString: databaseUrl }, { log, connectionsMax: 10 });
  const { pool } = database;
  const network = networkSettings([anvil.url], {
    verification: 'sample',
    timeout_ms: 60_000,
    partition_blocks: PARTITION_BLOCKS,
    contracts: [{ address: TOKEN, abi: [TRANSFER] }],
  });
  const startMs = performance.now();
  const settings = { networks: [network], watchesPerOwner: 0, decodeThreads: 1 };
  let seconds = 0;
  let peakBytes = 0;
  {
    await using indexer = await startIndexer({ pool, settings, log });
    for (;;) {
      const freshness = await findFreshness(pool, NETWORK);
      const { rows } = await pool.query<{ n: number }>(
        'select count(*)::integer as n from indexer_partitions where not indexed',
      );
      peakBytes = Math.max(peakBytes, await readRss(process.pid));
      if (freshness?.lag === 0 && freshness.head !== null && rows[0]!.n === 0) break;
      await delay(POLL_MS);
    }
    seconds = (performance.now() - startMs) / 1000;
    console.log('endpoint:', JSON.stringify(indexer.report(NETWORK)[0]));
  }
  const { rows } = await pool.query<{ n: number }>('select sum(rows)::integer as n from indexer_spans');
  console.log(`queries with ${rows[0]!.n} events:`);
  await measureQueries(pool, await anvil.head());
  return { seconds, peakBytes };
}

/** `npm run bench -- indexer [EVENTS] [--no-ponder]` */
export async function benchIndexer(): Promise<void> {
  const events = Number(process.argv[3] ?? DEFAULT_EVENTS);
  await using server = await startTestServer(log, { shared_buffers: '256MB', autovacuum: 'on' });
  const serverUrl = server.url;
  console.log(`making a chain with ${events} transfers`);
  await using anvil = await makeChain(events);
  console.log('limits, each alone:');
  const limits = await measureLimits(anvil, serverUrl);
  for (const { name, seconds } of limits) console.log(`  ${name.padEnd(40)} ${rate(events, seconds)}`);
  await using database = await createIndexerDatabase(serverUrl);
  const ours = await runOurs(anvil, databaseUrlOf(server.url, database.name));
  const slowest = Math.max(...limits.slice(0, 3).map(({ seconds }) => seconds));
  const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
  console.log(
    `skerry  ${rate(events, ours.seconds)}  ${ours.seconds.toFixed(1)} s  peak ${megabytes(ours.peakBytes)}`,
  );
  console.log(`of the limit (the slowest of RPC, decoding, COPY): ${(slowest / ours.seconds).toFixed(2)}`);
  if (process.argv.includes('--no-ponder')) return;
  try {
    await using other = await createTestDatabase({ log, serverUrl: server.url });
    const ponder = await runPonder(anvil.url, databaseUrlOf(server.url, other.name), other.pool, events);
    console.log(
      `ponder  ${rate(events, ponder.seconds)}  ${ponder.seconds.toFixed(1)} s  peak ${megabytes(ponder.peakBytes)}`,
    );
    console.log(`skerry : ponder = ${(ponder.seconds / ours.seconds).toFixed(2)}`);
  } catch (error) {
    console.log(`ponder could not be measured: ${(error as Error).message}`);
  }
}
