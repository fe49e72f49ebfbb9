import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@skerry/kit';
import { openPool } from '../../packages/database/src/connect.ts';
import { createTestDatabase, databaseUrlOf } from '../../packages/database/src/testing/database.ts';
import { startTestServer, type TestServer } from '../../packages/database/src/testing/server.ts';
import { inTransaction } from '../../packages/database/src/transaction.ts';
import { parseDeclaration } from '../../packages/indexer/src/abi/declaration.ts';
import { readRange } from '../../packages/indexer/src/decode/range.ts';
import { findFreshness } from '../../packages/indexer/src/read/status.ts';
import type { EndpointReport } from '../../packages/indexer/src/rpc/pool.ts';
import { sendCalls } from '../../packages/indexer/src/rpc/transport.ts';
import { createNetworkTables, Partitions } from '../../packages/indexer/src/store/partitions.ts';
import { copyRows } from '../../packages/indexer/src/store/rows.ts';
import type { Anvil } from '../../packages/indexer/src/testing/anvil.ts';
import { TRANSFER } from '../../packages/indexer/src/testing/contracts.ts';
import {
  createIndexerDatabase,
  NETWORK,
  networkSettings,
  TOKEN,
  TRANSFER_TOPIC,
} from '../../packages/indexer/src/testing/setup.ts';
import { type Figures, tell } from '../measure/figures.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';
import { makeChain } from './chain.ts';
import { readRss, runPonder } from './ponder.ts';
import { benchIndexerQueries } from './queries.ts';

const DEFAULT_EVENTS = 1_000_000;
const DEFAULT_QUERY_EVENTS = 10_000_000;
const RANGE_BLOCKS = 10;
const PARTITION_BLOCKS = 1_000_000;
const POLL_MS = 50;
/** Of all parts on the same cores; or so much of what a bare pipeline of them does, where that is less. */
const GOAL = 0.9;
const OF_THE_LEAST = 0.9;
const log = createLogger('bench', 'warn');

interface Stage {
  readonly name: string;
  readonly seconds: number;
}

interface Limits {
  readonly stages: readonly Stage[];
  readonly cpuSeconds: number;
}

/**
 * What the parts take by themselves, one at a time: nobody can be faster than the slowest. Range by range, so that
 * the chain need not fit into memory.
 */
async function measureLimits(anvil: Anvil, server: TestServer): Promise<Limits> {
  const head = await anvil.head();
  const signal = new AbortController().signal;
  const events = [{ id: 1, definition: parseDeclaration(TRANSFER) }];
  const claims = [{ contractId: 1, address: TOKEN, topics: [TRANSFER_TOPIC], events, fromBlock: 0 }];
  await using database = await createIndexerDatabase(server.url);
  const { pool } = database;
  await pool.query(`insert into indexer_networks (name, chain_id) values ('bench', 1)`);
  await createNetworkTables(pool, 1);
  const partitions = new Partitions(pool, 1, PARTITION_BLOCKS);
  await partitions.ensure('events', 0, head);
  const readOthers = () => readProcessorSeconds([anvil.pid, server.pid]);
  const [ownBefore, othersBefore] = [process.cpuUsage(), readOthers()];
  const seconds = { rpc: 0, decode: 0, copy: 0, index: 0 };
  const timed = async <T>(stage: keyof typeof seconds, body: () => T | Promise<T>): Promise<T> => {
    const startMs = performance.now();
    const result = await body();
    seconds[stage] += (performance.now() - startMs) / 1000;
    return result;
  };
  for (let from = 0; from <= head; from += RANGE_BLOCKS) {
    const to = Math.min(head, from + RANGE_BLOCKS - 1);
    const filter = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}`, address: [TOKEN] };
    const calls = [{ method: 'eth_getLogs', params: [filter] }];
    const body = await timed('rpc', () => sendCalls(anvil.url, calls, { timeoutMs: 60_000, signal }));
    const task = { body, from, to, headers: [], known: [], claims, claimsKey: 'bench', blooms: false };
    const result = await timed('decode', () => readRange(task));
    if (!result.ok || result.missing.length > 0) throw new Error('the chain could not be read');
    await timed('copy', () => inTransaction(pool, (client) => copyRows(client, 'events', 1, result.batch)));
  }
  await timed('index', () => partitions.finish());
  const own = process.cpuUsage(ownBefore);
  const cpuSeconds = (own.user + own.system) / 1e6 + readOthers() - othersBefore;
  const stages = [
    { name: 'RPC delivery, one request at a time', seconds: seconds.rpc },
    { name: 'decoding, one thread', seconds: seconds.decode },
    { name: 'COPY', seconds: seconds.copy },
    { name: 'making the indexes', seconds: seconds.index },
  ];
  return { stages, cpuSeconds };
}

/** Seconds of a bare pipeline of the same parts in a process of its own, from its start to its end. */
async function runPipeline(anvil: Anvil, server: TestServer): Promise<number> {
  await using database = await createIndexerDatabase(server.url);
  const args = [databaseUrlOf(server.url, database.name), anvil.url, String(await anvil.head())];
  const startMs = performance.now();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'pipeline.ts'), ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the bare pipeline ended with ${code}`);
  return (performance.now() - startMs) / 1000;
}

interface OwnRun {
  readonly seconds: number;
  /** Of the indexer, the chain and the database. */
  readonly cpuSeconds: number;
  /** Resident bytes of the process at each quarter of the way, and the most that were seen. */
  readonly quarters: readonly number[];
  readonly peakBytes: number;
  readonly report: EndpointReport;
}

/** From an empty database until the last event is queryable and every index is there, in a process of its own. */
async function runOurs(anvil: Anvil, server: TestServer, databaseUrl: string): Promise<OwnRun> {
  await using database = await openPool({ connectionString: databaseUrl }, { log, connectionsMax: 2 });
  const { pool } = database;
  const network = networkSettings([anvil.url], {
    // As settings have it that do not say otherwise; the tests' own are for chains of a few blocks.
    poll_ms: 2_000,
    verification: 'sample',
    timeout_ms: 60_000,
    partition_blocks: PARTITION_BLOCKS,
    contracts: [{ address: TOKEN, abi: [TRANSFER] }],
  });
  const settings = JSON.stringify({ networks: [network], watches_per_owner: 0, decode_threads: 1 });
  const head = await anvil.head();
  const othersBefore = readProcessorSeconds([anvil.pid, server.pid]);
  const startMs = performance.now();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'child.ts'), databaseUrl, settings], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const said = text(child.stdout);
  const quarters: number[] = [];
  let peakBytes = 0;
  for (;;) {
    await delay(POLL_MS);
    if (child.exitCode !== null) throw new Error(`the indexer ended with ${child.exitCode}`);
    const bytes = await readRss(child.pid!);
    peakBytes = Math.max(peakBytes, bytes);
    const freshness = await findFreshness(pool, NETWORK);
    if ((freshness?.indexed ?? -1) >= (head * (quarters.length + 1)) / 4) quarters.push(bytes);
    if (freshness?.lag !== 0 || freshness.head === null) continue;
    const { rows } = await pool.query<{ n: number }>(
      'select count(*)::integer as n from indexer_partitions where not indexed',
    );
    if (rows[0]!.n === 0) break;
  }
  const seconds = (performance.now() - startMs) / 1000;
  const cpuSeconds = readProcessorSeconds([anvil.pid, server.pid, child.pid!]) - othersBefore;
  child.stdin.end();
  const reports = JSON.parse(await said) as EndpointReport[];
  return { seconds, cpuSeconds, quarters, peakBytes, report: reports[0]! };
}

/** What the parts take alone, and all of them together on the cores that chain, database and indexer share here. */
function takeLimits(figures: Figures, events: number, { stages, cpuSeconds }: Limits): number {
  const cores = availableParallelism();
  figures.group(`${events.toLocaleString('en')} events, limits`);
  for (const { name, seconds } of stages) figures.add(`${name} alone`, '/s', events / seconds);
  const shared = cpuSeconds / cores;
  figures.add('all of these, CPU time', 's', cpuSeconds);
  figures.add(`all of these on ${cores} cores`, '/s', events / shared);
  return shared;
}

/** @param pipelineSeconds of the bare pipeline */
function takeOurs(
  figures: Figures,
  events: number,
  ours: OwnRun,
  limits: Limits,
  { shared, pipelineSeconds }: { readonly shared: number; readonly pipelineSeconds: number },
): void {
  const slowest = Math.max(...limits.stages.slice(0, 3).map(({ seconds }) => seconds));
  figures.group(`${events.toLocaleString('en')} events, the indexer`);
  figures.add('Skerry', '/s', events / ours.seconds);
  figures.add('Skerry, in all', 's', ours.seconds);
  figures.add('Skerry, CPU time of indexer, chain and database', 's', ours.cpuSeconds, {
    ratio: { to: 'all of these, CPU time', values: [ours.cpuSeconds / limits.cpuSeconds] },
  });
  figures.add(
    'memory at each quarter',
    'MB',
    ours.quarters.map((bytes) => bytes / 1e6),
  );
  figures.add('memory, the most', 'MB', ours.peakBytes / 1e6);
  const { requests, calls } = ours.report;
  figures.add('HTTP requests for a million events', '', (requests * 1e6) / events);
  figures.add('RPC calls for a million events', '', (calls * 1e6) / events);
  figures.add('Skerry to the slowest part alone (RPC, decoding, COPY)', '', slowest / ours.seconds);
  const bare = shared / pipelineSeconds;
  figures.add('a bare pipeline of the parts', '/s', events / pipelineSeconds);
  figures.add('a bare pipeline to all parts on the same cores', '', bare);
  figures.add('Skerry to all parts on the same cores', '', shared / ours.seconds, {
    goal: { of: 'median', least: Math.min(GOAL, OF_THE_LEAST * bare) },
  });
}

async function benchPonder(figures: Figures, anvil: Anvil, server: TestServer, events: number, own: number) {
  await using other = await createTestDatabase({ log, serverUrl: server.url });
  try {
    const ponder = await runPonder(anvil.url, databaseUrlOf(server.url, other.name), other.pool, events);
    figures.add('Ponder', '/s', events / ponder.seconds);
    figures.add('Ponder, memory, the most', 'MB', ponder.peakBytes / 1e6);
    figures.add('Skerry to Ponder', '', ponder.seconds / own, { goal: { of: 'median', least: 3 } });
  } catch (error) {
    tell(`ponder could not be measured: ${(error as Error).message}`);
  }
}

/** `npm run bench -- indexer [EVENTS] [--no-ponder]`, or `--queries [EVENTS]` */
export async function benchIndexer(figures: Figures, args: readonly string[]): Promise<void> {
  const numbers = args.filter((one) => /^\d+$/.test(one));
  if (args.includes('--queries'))
    return benchIndexerQueries(figures, Number(numbers[0] ?? DEFAULT_QUERY_EVENTS));
  const events = Number(numbers[0] ?? DEFAULT_EVENTS);
  await using server = await startTestServer(log, { shared_buffers: '256MB', autovacuum: 'on' });
  tell(`making a chain with ${events} transfers`);
  await using anvil = await makeChain(events);
  const limits = await measureLimits(anvil, server);
  const shared = takeLimits(figures, events, limits);
  await using database = await createIndexerDatabase(server.url);
  const pipelineSeconds = await runPipeline(anvil, server);
  const ours = await runOurs(anvil, server, databaseUrlOf(server.url, database.name));
  takeOurs(figures, events, ours, limits, { shared, pipelineSeconds });
  if (!args.includes('--no-ponder')) await benchPonder(figures, anvil, server, events, ours.seconds);
}
