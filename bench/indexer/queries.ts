import { createLogger } from '@skerry/kit';
import { startTestServer } from '../../packages/database/src/testing/server.ts';
import { parseArguments } from '../../packages/indexer/src/read/arguments.ts';
import { listEvents } from '../../packages/indexer/src/read/events.ts';
import { listTransactions } from '../../packages/indexer/src/read/transactions.ts';
import { createNetworkTables, Partitions } from '../../packages/indexer/src/store/partitions.ts';
import { TRANSFER } from '../../packages/indexer/src/testing/contracts.ts';
import {
  CHAIN_ID,
  createIndexerDatabase,
  NETWORK,
  OTHER,
  TOKEN,
  word,
} from '../../packages/indexer/src/testing/setup.ts';
import { watchContract } from '../../packages/indexer/src/watch.ts';
import { type Figures, tell } from '../measure/figures.ts';

type Pool = Parameters<typeof listEvents>[0];

const EVENTS_PER_BLOCK = 1_000;
const TRANSACTIONS_PER_BLOCK = 100;
const PARTITIONS = 5;
const START_TIME = 1_700_000_000;
const BLOCK_SECONDS = 12;
const SENDERS = 4096;
const RECEIVERS = 65_536;
const SPAN_BLOCKS = 5;
/** Made by one statement. */
const FILL_BLOCKS = 100;
const ROUNDS = 40;
const WARM_ROUNDS = 3;
const GOAL_MS = 20;

const PAGE = { limit: 20, offset: 0 };

/** `0x` and a number as an address, in SQL. */
const addressOf = (expression: string) => `'0x' || lpad(to_hex(${expression}), 40, '0')`;

/** Rows as an indexer leaves them behind, made by the server: a tenth of the events are of another contract. */
export async function fillIndexer(pool: Pool, blocks: number): Promise<void> {
  await pool.query('insert into indexer_networks (name, chain_id) values ($1, $2)', [NETWORK, CHAIN_ID]);
  await createNetworkTables(pool, 1);
  for (const contract of [TOKEN, OTHER])
    await watchContract(pool, {
      network: NETWORK,
      contract,
      abi: [TRANSFER],
      startBlock: 0,
      transactions: true,
      owner: 'bench',
    });
  const { rows } = await pool.query<{ id: number }>('select id from indexer_event_types limit 1');
  const event = rows[0]!.id;
  const partitions = new Partitions(pool, 1, Math.ceil(blocks / PARTITIONS));
  await partitions.ensure('events', 0, blocks - 1);
  await partitions.ensure('transactions', 0, blocks - 1);
  const time = `${START_TIME} + b * ${BLOCK_SECONDS}`;
  for (let from = 0; from < blocks; from += FILL_BLOCKS) {
    const to = Math.min(blocks, from + FILL_BLOCKS) - 1;
    const each = (count: number) =>
      `from generate_series(${from}, ${to}) b cross join generate_series(0, ${count - 1}) i`;
    await pool.query(
      `insert into indexer_events_n1 select b, i, case when i % 10 = 0 then 2 else 1 end, ${event}, ${time},
         sha256(int8send(b * 1000 + i)),
         jsonb_build_object('from', ${addressOf(`((b * 13 + i) % ${SENDERS})::int`)},
           'to', ${addressOf(`((b * 13 + 7 * i) % ${RECEIVERS})::int`)}, 'value', i::text) ${each(EVENTS_PER_BLOCK)}`,
    );
    const bytes = (expression: string) => `decode(lpad(to_hex(${expression}), 40, '0'), 'hex')`;
    await pool.query(
      `insert into indexer_transactions_n1 select b, i, sha256(int8send(b * 100 + i)), ${bytes(`((b * 31 + i) % ${SENDERS})::int`)},
         ${bytes(`((b * 17 + i) % ${RECEIVERS})::int`)}, i, 21000, 7, ${time} ${each(TRANSACTIONS_PER_BLOCK)}`,
    );
  }
  for (const [contract, type, rows] of [
    [1, event, 0.9 * EVENTS_PER_BLOCK],
    [2, event, 0.1 * EVENTS_PER_BLOCK],
    [0, 0, TRANSACTIONS_PER_BLOCK],
  ] as const)
    await pool.query(
      `insert into indexer_spans select 1, ${contract}, ${type}, b, b + ${SPAN_BLOCKS - 1}, ${time},
         ${time} + ${(SPAN_BLOCKS - 1) * BLOCK_SECONDS}, ${rows * SPAN_BLOCKS}
       from generate_series(0, ${blocks - 1}, ${SPAN_BLOCKS}) b`,
    );
  await partitions.finish();
  await pool.query(
    `update indexer_networks set head_number = $1, tip_number = $1, tip_hash = '0x', finalized_number = $1`,
    [blocks - 1],
  );
}

/** A question of each kind, with other values each time. */
export function listQuestions(
  pool: Pool,
  blocks: number,
): readonly (readonly [name: string, ask: () => Promise<unknown>])[] {
  const events = blocks * EVENTS_PER_BLOCK;
  const pick = (below: number) => Math.floor(Math.random() * below);
  const time = () => START_TIME + pick(blocks) * BLOCK_SECONDS;
  const account = (below: number) => `0x${word(pick(below)).slice(26)}`;
  const contracts = [TOKEN, OTHER];
  const contract = () => contracts[pick(2)]!;
  const argument = (name: string, below: number) => parseArguments({ [name]: account(below) });
  const ask =
    (make: () => Parameters<typeof listEvents>[2], page = PAGE) =>
    () =>
      listEvents(pool, NETWORK, make(), page);
  const askTransactions = (make: () => Parameters<typeof listTransactions>[2]) => () =>
    listTransactions(pool, NETWORK, make(), PAGE);
  const deep = { limit: 100, offset: 10_000 };
  return [
    ['events', ask(() => ({}))],
    ['events, page 101 of 100', ask(() => ({}), deep)],
    ['contract', ask(() => ({ contract: contract() }))],
    ['event_name', ask(() => ({ eventName: 'Transfer' }))],
    ['contract, event_name', ask(() => ({ contract: contract(), eventName: 'Transfer' }))],
    ['from_block', ask(() => ({ fromBlock: pick(blocks) }))],
    ['to_block', ask(() => ({ toBlock: pick(blocks) }))],
    [
      'contract, from_block, to_block',
      ask(() => ({ contract: contract(), fromBlock: pick(blocks / 2), toBlock: blocks - 3 })),
    ],
    ['from_timestamp', ask(() => ({ fromTimestamp: time() }))],
    ['contract, to_timestamp', ask(() => ({ contract: contract(), toTimestamp: time() }))],
    [`args.to (${(events / RECEIVERS) | 0} rows)`, ask(() => ({ args: argument('to', RECEIVERS) }))],
    [`args.from (${(events / SENDERS) | 0} rows)`, ask(() => ({ args: argument('from', SENDERS) }))],
    [
      'contract, event_name, args.to',
      ask(() => ({ contract: TOKEN, eventName: 'Transfer', args: argument('to', RECEIVERS) })),
    ],
    ['transactions', askTransactions(() => ({}))],
    ['transactions: address', askTransactions(() => ({ address: account(SENDERS) }))],
    ['transactions: from', askTransactions(() => ({ from: account(SENDERS) }))],
    ['transactions: to', askTransactions(() => ({ to: account(RECEIVERS) }))],
    [
      'transactions: from, from_timestamp',
      askTransactions(() => ({ from: account(SENDERS), fromTimestamp: time() })),
    ],
  ];
}

/** `npm run bench -- indexer --queries [EVENTS]`: every documented filter on so many events. */
export async function benchIndexerQueries(figures: Figures, events: number): Promise<void> {
  const log = createLogger('bench', 'warn');
  await using server = await startTestServer(log, { shared_buffers: '512MB', autovacuum: 'off' });
  await using database = await createIndexerDatabase(server.url);
  const { pool } = database;
  const blocks = Math.ceil(events / EVENTS_PER_BLOCK / SPAN_BLOCKS) * SPAN_BLOCKS;
  const startMs = performance.now();
  await fillIndexer(pool, blocks);
  tell(
    `${blocks * EVENTS_PER_BLOCK} events and ${blocks * TRANSACTIONS_PER_BLOCK} transactions in ${PARTITIONS} partitions, made in ${Math.round((performance.now() - startMs) / 1000)} s`,
  );
  figures.group(`${(blocks * EVENTS_PER_BLOCK).toLocaleString('en')} events, ${ROUNDS} questions each`);
  for (const [name, run] of listQuestions(pool, blocks)) {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS + WARM_ROUNDS; round++) {
      const beganMs = performance.now();
      await run();
      if (round >= WARM_ROUNDS) times.push(performance.now() - beganMs);
    }
    figures.addTimes(name, times, { goal: { of: 'p95', most: GOAL_MS } });
  }
}
