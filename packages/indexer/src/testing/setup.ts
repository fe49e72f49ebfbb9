import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type pg from 'pg';
import { parseDeclaration } from '../abi/declaration.ts';
import { topicOf } from '../abi/topic.ts';
import { type Claim, Claims } from '../chain/claims.ts';
import { parseLogs, parseTransactions } from '../chain/shape.ts';
import { findFreshness } from '../read/status.ts';
import { type NetworkSettings, parseIndexerSettings } from '../settings.ts';
import { listContractEvents } from '../store/declared.ts';
import type { Anvil } from './anvil.ts';
import { TRANSFER } from './contracts.ts';

const MIGRATIONS = fileURLToPath(new URL('../../../../services/core/src/store/migrations', import.meta.url));

export const CHAIN_ID = 31337;
export const NETWORK = 'anvil';
export const TOKEN = `0x${'c0'.repeat(20)}`;
export const OTHER = `0x${'c1'.repeat(20)}`;

export const word = (value: number | bigint | string): string =>
  `0x${(typeof value === 'string' ? value.slice(2) : value.toString(16)).padStart(64, '0')}`;

export const TRANSFER_TOPIC = topicOf(parseDeclaration(TRANSFER));

/** @param serverUrl of another server than the tests share */
export function createIndexerDatabase(serverUrl?: string): Promise<TestDatabase<unknown>> {
  return createTestDatabase<unknown>({
    migrations: MIGRATIONS,
    serverUrl,
    log: createLogger('test', 'silent'),
  });
}

/** Settings of one network whose loops turn quickly, and for which nobody who answers is late. */
export function networkSettings(
  endpoints: readonly string[],
  more: Partial<NetworkSettings> = {},
): NetworkSettings {
  const network = {
    name: NETWORK,
    chain_id: CHAIN_ID,
    endpoints,
    poll_ms: 20,
    timeout_ms: 60_000,
    lie_rest_ms: 20,
    finality_depth: 16,
    verification: 'every',
    partition_blocks: 1_000,
    contracts: [{ address: TOKEN, abi: [TRANSFER] }],
    ...more,
  };
  return parseIndexerSettings({ networks: [network] }).networks[0]!;
}

/** The same of an indexer that reads this network alone, in its own thread. */
export const indexerSettings = (endpoints: readonly string[], more: Partial<NetworkSettings> = {}) => ({
  networks: [networkSettings(endpoints, more)],
  watchesPerOwner: 1,
  watchesMax: 100,
  exemptOwners: [],
  standingCredits: 0,
  decodeThreads: 0,
});

/** A deterministic stream of numbers in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  // Mulberry32 (public domain).
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Until everything that is asked for is read up to the chain's head. */
export async function untilIndexed(pool: pg.Pool, anvil: Anvil): Promise<void> {
  const look = async () => {
    const head = await anvil.head();
    const block = await anvil.call<{ hash: string }>('eth_getBlockByNumber', `0x${head.toString(16)}`, false);
    const { rows } = await pool.query<{ hash: string | null; waiting: number }>(
      `select tip_hash as hash, (select count(*)::integer from indexer_scans s
         where s.network_id = n.id and not live and (to_block is null or next_block <= to_block)) as waiting
       from indexer_networks n where name = $1`,
      [NETWORK],
    );
    const freshness = await findFreshness(pool, NETWORK);
    return {
      isDone: rows[0]?.hash === block.hash && rows[0].waiting === 0 && freshness?.indexed === head,
      ...{ head, tip: rows[0], freshness },
    };
  };
  await until('the chain is indexed', look, ({ isDone }) => isDone);
}

/** Blocks that are asked for in one request. */
const BLOCKS_PER_REQUEST = 50;

/** Every block of the chain with its logs. */
async function* readBlocks(anvil: Anvil) {
  const head = await anvil.head();
  for (let from = 0; from <= head; from += BLOCKS_PER_REQUEST) {
    const numbers = Array.from({ length: Math.min(BLOCKS_PER_REQUEST, head + 1 - from) }, (_, n) => from + n);
    const blocks = await anvil.callAll<{ timestamp: string; hash: string }>(
      'eth_getBlockByNumber',
      numbers.map((number) => [`0x${number.toString(16)}`, true]),
    );
    const logs = await anvil.callAll(
      'eth_getLogs',
      blocks.map(({ hash }) => [{ blockHash: hash }]),
    );
    for (const [index, number] of numbers.entries())
      yield { number, full: blocks[index]!, logs: parseLogs(logs[index]) };
  }
}

/** What the tables should hold: every wanted log of the chain, read from the node itself, block by block. */
export async function readChain(
  pool: pg.Pool,
  anvil: Anvil,
): Promise<{ events: string[]; transactions: string[] }> {
  const { rows } = await pool.query<{
    contractId: number;
    address: string;
    kind: string;
    topics: string[];
    fromBlock: number;
    toBlock: number | null;
  }>(
    `select contract_id as "contractId", address, kind, topics, from_block as "fromBlock",
       to_block as "toBlock"
     from indexer_scans s join indexer_contracts c on c.id = s.contract_id order by s.id`,
  );
  const events = await listContractEvents(
    pool,
    rows.map(({ contractId }) => contractId),
  );
  const logScans = rows.filter(({ kind }) => kind === 'events');
  const claims = logScans.map(
    (scan) => new Claims([{ ...scan, events: events.get(scan.contractId)! } satisfies Claim]),
  );
  const wanted: { events: string[]; transactions: string[] } = { events: [], transactions: [] };
  for await (const { number, full, logs } of readBlocks(anvil)) {
    const time = Number(full.timestamp);
    for (const log of logs)
      for (const [index, claim] of claims.entries()) {
        if (number > (logScans[index]!.toBlock ?? number)) continue;
        const found = claim.read(log);
        if (found)
          wanted.events.push(
            JSON.stringify([
              number,
              log.logIndex,
              found.contractId,
              found.eventId,
              time,
              log.transactionHash,
              JSON.parse(found.args),
            ]),
          );
      }
    for (const one of parseTransactions(full)) {
      const isWanted = rows.some(
        ({ kind, address, fromBlock }) =>
          kind === 'transactions' && number >= fromBlock && (address === one.from || address === one.to),
      );
      if (isWanted)
        wanted.transactions.push(
          JSON.stringify([
            number,
            one.index,
            one.hash,
            one.from,
            one.to,
            one.value,
            one.gas,
            one.gasPrice,
            time,
          ]),
        );
    }
  }
  return wanted;
}

/** What the tables hold, in the same form and order. */
export async function readTables(pool: pg.Pool): Promise<{ events: string[]; transactions: string[] }> {
  const { rows: networks } = await pool.query<{ id: number }>(
    'select id from indexer_networks where name = $1',
    [NETWORK],
  );
  const id = networks[0]!.id;
  const events = await pool.query({
    text: `select block_number, log_index, contract_id, event_id, "timestamp", '0x' || encode(transaction_hash, 'hex'), args
      from indexer_events_n${id} order by 1, 2`,
    rowMode: 'array',
  });
  const transactions = await pool.query({
    text: `select block_number, transaction_index, '0x' || encode(hash, 'hex'), '0x' || encode("from", 'hex'),
        '0x' || encode("to", 'hex'), value::text, gas, gas_price::text, "timestamp"
      from indexer_transactions_n${id} order by 1, 2`,
    rowMode: 'array',
  });
  return {
    events: events.rows.map((row) => JSON.stringify(sortKeys(row))),
    transactions: transactions.rows.map((row) => JSON.stringify(row)),
  };
}

/** jsonb keeps no order of keys. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sortKeys(one)]),
  );
}

/** Both the same, and every span says how many rows there are. Gives the number of events. */
export async function compareWithChain(pool: pg.Pool, anvil: Anvil): Promise<number> {
  const [chain, tables] = [await readChain(pool, anvil), await readTables(pool)];
  const expected = chain.events.map((one) => JSON.stringify(sortKeys(JSON.parse(one))));
  if (digest(expected) !== digest(tables.events))
    throw new Error(describeDifference('events', expected, tables.events));
  if (digest(chain.transactions) !== digest(tables.transactions))
    throw new Error(describeDifference('transactions', chain.transactions, tables.transactions));
  const { rows } = await pool.query<{ kind: string; n: number }>(
    `select case contract_id when 0 then 'transactions' else 'events' end as kind, sum(rows)::bigint as n
     from indexer_spans group by 1`,
  );
  for (const kind of ['events', 'transactions'] as const) {
    const counted = rows.find((one) => one.kind === kind)?.n ?? 0;
    if (counted !== tables[kind].length)
      throw new Error(`the spans count ${counted} ${kind}, there are ${tables[kind].length}`);
  }
  return tables.events.length;
}

const digest = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex');

function describeDifference(what: string, expected: readonly string[], found: readonly string[]): string {
  const missing = expected.filter((line) => !found.includes(line));
  const extra = found.filter((line) => !expected.includes(line));
  return `${what}: ${missing.length} missing (${missing.slice(0, 3).join(' ')}), ${extra.length} too many (${extra.slice(0, 3).join(' ')})`;
}
