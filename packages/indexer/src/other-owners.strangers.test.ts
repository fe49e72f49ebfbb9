import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type pg from 'pg';
import { parseDeclaration } from './abi/declaration.ts';
import { logFilter } from './chain/source.ts';
import { startIndexer } from './indexer.ts';
import { readContractEvents } from './read/contract-events.ts';
import { listEvents } from './read/events.ts';
import { findOrdered } from './read/selection.ts';
import { listTransactions } from './read/transactions.ts';
import { ensureNetwork } from './store/networks.ts';
import { joinScans } from './store/upkeep.ts';
import { Anvil } from './testing/anvil.ts';
import { TRANSFER } from './testing/contracts.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  indexerSettings,
  NETWORK,
  TOKEN,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from './testing/setup.ts';
import { unwatchContract, watchContract } from './watch.ts';

const log = createLogger('test', 'silent');
const ALICE = `0x${'a1'.repeat(20)}`;
const BOB = `0x${'b0'.repeat(20)}`;
const STRANGER = `0x${'66'.repeat(20)}`;
const HONEST = `0x${'77'.repeat(20)}`;
const SIGNATURE = 'Transfer(address,address,uint256)';
const SWAPPED = 'event Transfer(address indexed to, address indexed from, uint256 value)';
const START = 20;
const LIMITS = { watchesPerOwner: 20, watchesMax: 100, exemptOwners: [], standingCredits: 0 };

async function transfer(anvil: Anvil, value: number): Promise<void> {
  await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(ALICE), word(BOB)], word(value));
  await anvil.mine();
}

const newest = async (pool: Parameters<typeof listEvents>[0]) =>
  (await listEvents(pool, NETWORK, { contract: TOKEN }, { limit: 1, offset: 0 }))?.items[0]?.args;

test('who asks for a contract later does not decide how others read it: neither names nor how far it is read', async () => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await anvil.setCode(TOKEN);
  for (let value = 0; value < 2 * START; value++) await transfer(anvil, value);
  const contracts = [{ address: TOKEN, abi: [TRANSFER], start_block: START }];
  const settings = indexerSettings([anvil.url], { contracts });
  const ask = (owner: string, abi: readonly string[], startBlock: number) =>
    watchContract(pool, { network: NETWORK, contract: TOKEN, abi, startBlock, owner }, LIMITS);
  {
    await using _indexer = await startIndexer({ pool, settings, log });
    await untilIndexed(pool, anvil);
    await ask(STRANGER, [SWAPPED], START);
    await transfer(anvil, 100);
    await untilIndexed(pool, anvil);
    assert.deepEqual(await newest(pool), { from: ALICE, to: BOB, value: '100' });
    await compareWithChain(pool, anvil);
  }
  // Nobody reads on: what the stranger asks for now stays unread.
  await ask(STRANGER, [SWAPPED, 'event Other()', `event ${SIGNATURE} anonymous`], 0);
  const head = await anvil.head();
  const filter = { contract: TOKEN, eventName: SIGNATURE, fromBlock: START };
  const list = await listEvents(pool, NETWORK, filter, { limit: 1, offset: 0 });
  assert.deepEqual(
    list?.coverage.map(({ kind, fromBlock, toBlock }) => [kind, fromBlock, toBlock]),
    [['events', START, head]],
  );
  const source = { network: NETWORK, contract: TOKEN, event: parseDeclaration(TRANSFER) };
  const read = await readContractEvents(pool, source, START, 1_000);
  assert.deepEqual([read?.readTo, read?.events.length, read?.isCut], [head, START + 2, false]);
  const earlier = await readContractEvents(pool, source, 0, 1_000);
  assert.deepEqual([read?.isAtTip, earlier?.isAtTip], [true, false]);
  // Of the blocks that nobody has read nothing is said.
  const all = await listEvents(pool, NETWORK, { ...filter, fromBlock: 0 }, { limit: 1, offset: 0 });
  assert.deepEqual(
    all?.coverage.map(({ toBlock }) => toBlock),
    [null],
  );
});

test('earlier blocks that were joined with what follows the tip are read once, and nothing after them is missed', async () => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await anvil.setCode(TOKEN);
  for (let value = 0; value < 2 * START; value++) await transfer(anvil, value);
  const contracts = [{ address: TOKEN, abi: [TRANSFER], start_block: START }];
  const settings = indexerSettings([anvil.url], { contracts, finality: 'depth', finality_depth: 2 });
  await using indexer = await startIndexer({ pool, settings, log });
  await untilIndexed(pool, anvil);
  await indexer.watch({ network: NETWORK, contract: TOKEN, abi: [TRANSFER], startBlock: 5, owner: HONEST });
  await untilIndexed(pool, anvil);
  const { rows } = await pool.query<{ id: number }>('select id from indexer_networks');
  await joinScans(pool, rows[0]!.id);
  assert.equal((await pool.query('select from indexer_scans')).rowCount, 1);
  await transfer(anvil, 100);
  await untilIndexed(pool, anvil);
  assert.equal(await compareWithChain(pool, anvil), 2 * START - 3);
});

test('without the settings it is the one who asked first, for as long as they ask', async () => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await anvil.setCode(TOKEN);
  const settings = indexerSettings([anvil.url], { contracts: [] });
  await using indexer = await startIndexer({ pool, settings: { ...settings, watchesPerOwner: 20 }, log });
  const watch = (owner: string, declaration: string) =>
    indexer.watch({ network: NETWORK, contract: TOKEN, abi: [declaration], startBlock: 0, owner });
  await watch(HONEST, 'event Transfer(address indexed a, address indexed b, uint256 c)');
  await watch(STRANGER, SWAPPED);
  // What an owner says later counts more than what the same one said before.
  await watch(HONEST, TRANSFER);
  await transfer(anvil, 1);
  await untilIndexed(pool, anvil);
  assert.deepEqual(await newest(pool), { from: ALICE, to: BOB, value: '1' });
  await indexer.unwatch({ network: NETWORK, contract: TOKEN, owner: HONEST });
  await transfer(anvil, 2);
  await untilIndexed(pool, anvil);
  assert.deepEqual(await newest(pool), { to: ALICE, from: BOB, value: '2' });
  // Whoever says how they read it is told so.
  const source = { network: NETWORK, contract: TOKEN, event: parseDeclaration(TRANSFER) };
  const read = await readContractEvents(pool, source, 0, 1_000);
  assert.deepEqual(read?.events.at(-1)?.args, { from: ALICE, to: BOB, value: '2' });
});

test('however many events strangers declare, a request for logs stays one that nodes take', async () => {
  const topics = (count: number) => Array.from({ length: count }, (_, index) => word(index));
  assert.deepEqual(logFilter({ addresses: [TOKEN], topics: topics(500) }), {
    address: [TOKEN],
    topics: [topics(500)],
  });
  assert.deepEqual(logFilter({ addresses: [TOKEN], topics: topics(501) }), { address: [TOKEN] });
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await ensureNetwork(pool, NETWORK, 1);
  const declare = (owner: string, from: number, count: number) => {
    const abi = Array.from({ length: count }, (_, index) => `event E${from + index}()`);
    return watchContract(pool, { network: NETWORK, contract: TOKEN, abi, startBlock: 0, owner }, LIMITS);
  };
  await declare(STRANGER, 0, 256);
  await declare(STRANGER, 256, 256);
  await assert.rejects(declare(STRANGER, 512, 1), { code: 'WATCH_LIMIT_REACHED' });
  // Nothing of it is left, and others have their own.
  assert.equal((await pool.query("select from indexer_event_types where name = 'E512'")).rowCount, 0);
  await declare(HONEST, 512, 256);
  await assert.rejects(
    watchContract(
      pool,
      { network: NETWORK, contract: ALICE, abi: [TRANSFER], startBlock: 0, owner: BOB },
      { ...LIMITS, watchesMax: 2 },
    ),
    { code: 'WATCH_LIMIT_REACHED' },
  );
});

test('a list whose rows take too long to find ends, and says so', async () => {
  await using database = await createIndexerDatabase();
  const { pool } = database;
  const { id } = await ensureNetwork(pool, NETWORK, 1);
  const holder = await pool.connect();
  try {
    // As good as a table that takes for ever.
    await holder.query(`begin; lock table indexer_transactions_n${id}`);
    await assert.rejects(
      listTransactions(pool, NETWORK, { address: TOKEN }, { limit: 1, offset: 0 }, { budgetMs: 50 }),
      { code: 'LIST_TOO_COSTLY' },
    );
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  const list = await listTransactions(pool, NETWORK, { address: TOKEN }, { limit: 1, offset: 0 });
  assert.deepEqual(list?.items, []);
});

test('a contract that is asked for again while its rows are deleted is read again: no wish waits for that', async () => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await anvil.setCode(TOKEN);
  for (let value = 0; value < START; value++) await transfer(anvil, value);
  const settings = indexerSettings([anvil.url], { contracts: [] });
  const place = { network: NETWORK, contract: TOKEN };
  {
    await using indexer = await startIndexer({ pool, settings, log });
    await indexer.watch({ ...place, abi: [SWAPPED], startBlock: 0, owner: STRANGER });
    await untilIndexed(pool, anvil);
  }
  await unwatchContract(pool, { ...place, owner: STRANGER }, LIMITS);
  await watchContract(pool, { ...place, abi: [TRANSFER], startBlock: 11, owner: HONEST }, LIMITS);
  const count = async () => (await pool.query('select from indexer_events_n1')).rowCount;
  assert.equal(await count(), START);
  await using _indexer = await startIndexer({ pool, settings, log });
  await until('it is read from where it is asked for', count, (rows) => rows === START - 10);
  await untilIndexed(pool, anvil);
  assert.deepEqual(await newest(pool), { from: ALICE, to: BOB, value: String(START - 1) });
  await compareWithChain(pool, anvil);
});

test('an event that strangers declare in many ways is found by its name in one look', async () => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await anvil.setCode(TOKEN);
  await transfer(anvil, 1);
  await using _indexer = await startIndexer({ pool, settings: indexerSettings([anvil.url]), log });
  await untilIndexed(pool, anvil);
  const abi = Array.from({ length: 100 }, (_, index) => `event Transfer(uint256 a${index})`);
  const request = { network: NETWORK, contract: ALICE, abi, startBlock: 0, owner: STRANGER };
  await watchContract(pool, request, LIMITS);
  const list = await listEvents(pool, NETWORK, { eventName: 'Transfer' }, { limit: 10, offset: 0 });
  assert.deepEqual([list?.total, list?.items.map(({ args }) => args.value)], [1, ['1']]);
  const texts: string[] = [];
  const query = async (text: string) => {
    texts.push(text);
    return { rows: [] };
  };
  const selection = { table: 't', contractId: undefined, bounds: {}, args: undefined, cursor: undefined };
  const eventIds = Array.from({ length: 10_000 }, (_, index) => index);
  const range = { from: 0, to: 1 };
  const client = { query } as unknown as pg.PoolClient;
  await findOrdered(client, { ...selection, range, eventIds }, { limit: 10, offset: 0 });
  assert.ok(texts.length === 1 && texts[0]!.length < 1_000, `${texts[0]?.length} characters`);
});
