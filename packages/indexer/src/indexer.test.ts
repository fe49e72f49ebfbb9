import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { startIndexer } from './indexer.ts';
import { listEvents } from './read/events.ts';
import { listTransactions } from './read/transactions.ts';
import { ensureNetwork } from './store/networks.ts';
import { Partitions } from './store/partitions.ts';
import { mergeSpans } from './store/upkeep.ts';
import { Anvil } from './testing/anvil.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  indexerSettings,
  NETWORK,
  OTHER,
  TOKEN,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from './testing/setup.ts';

const log = createLogger('test', 'silent');
const ALICE = `0x${'a1'.repeat(20)}`;
const BOB = `0x${'b0'.repeat(20)}`;

async function transfer(anvil: Anvil, value: number, contract = TOKEN): Promise<void> {
  await anvil.emit(contract, [TRANSFER_TOPIC, word(ALICE), word(BOB)], word(value));
}

describe('the indexer on a real chain', () => {
  test('reads what was there, follows what comes, undoes what is taken back', async () => {
    await using anvil = await Anvil.start();
    await using database = await createIndexerDatabase();
    const { pool } = database;
    await anvil.setCode(TOKEN);
    await anvil.setCode(OTHER);
    for (let value = 0; value < 40; value++) {
      await transfer(anvil, value);
      await transfer(anvil, value, OTHER);
      await anvil.mine();
    }
    const settings = indexerSettings([anvil.url]);
    await using _indexer = await startIndexer({ pool, settings, log });
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 40);
    await transfer(anvil, 100);
    await anvil.mine();
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 41);
    await anvil.reorg(5);
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 36);
    const list = await listEvents(pool, NETWORK, { contract: TOKEN }, { limit: 2, offset: 0 });
    assert.deepEqual(
      list?.items.map(({ args }) => args),
      [
        { from: ALICE, to: BOB, value: '35' },
        { from: ALICE, to: BOB, value: '34' },
      ],
    );
    assert.equal(list.total, 36);
    assert.equal(list.freshness.lag, 0);
    // Spans of one block each become one, and say the same.
    const count = async (bounds: { fromBlock?: number; toBlock?: number }) =>
      (await listEvents(pool, NETWORK, { contract: TOKEN, ...bounds }, { limit: 1, offset: 0 }))?.total;
    await anvil.mine(40);
    await untilIndexed(pool, anvil);
    const before = [
      await count({}),
      await count({ fromBlock: 10, toBlock: 30 }),
      await count({ toBlock: 35 }),
    ];
    assert.ok((await pool.query('select from indexer_spans')).rowCount! > 5);
    await until('the floor has passed the events', async () => {
      await mergeSpans(pool, 1);
      return (await pool.query('select from indexer_spans')).rowCount === 1;
    });
    assert.deepEqual(
      [await count({}), await count({ fromBlock: 10, toBlock: 30 }), await count({ toBlock: 35 })],
      before,
    );
    assert.deepEqual(before, [36, 21, 35]);
  });
});

test('transactions that were read for several contracts at different times are counted once, before and after spans are merged', async () => {
  await using database = await createIndexerDatabase();
  const { pool } = database;
  const { id } = await ensureNetwork(pool, NETWORK, 1);
  await new Partitions(pool, id, 10_000).ensure('transactions', 0, 1_000);
  // Block, rows, and the span that whoever read them noted.
  const passes = [
    { blocks: Array.from({ length: 10 }, (_, index) => Math.floor((index * 1_000) / 9)), rows: 1 },
    { blocks: [3, 4], rows: 5 },
    { blocks: [5, 6], rows: 3_000 },
  ];
  for (const { blocks, rows } of passes) {
    await pool.query(
      `insert into indexer_transactions_n${id}
       select block, index, '\\x01', '\\x02', null, 0, 0, 0, 10 * block from unnest($1::bigint[]) block, generate_series(1, $2) index`,
      [blocks, rows],
    );
    const [first, last] = [blocks[0]!, blocks.at(-1)!];
    await pool.query(
      'insert into indexer_spans values ($1, 0, 0, $2::bigint, $3::bigint, 10 * $2::bigint, 10 * $3::bigint, $4)',
      [id, first, last, blocks.length * rows],
    );
  }
  await pool.query('update indexer_networks set floor_number = 1000 where id = $1', [id]);
  const totals = async () => {
    const found: (number | undefined)[] = [];
    for (const bounds of [
      {},
      { fromBlock: 2 },
      { fromBlock: 4, toBlock: 5 },
      { toBlock: 500 },
      { fromTimestamp: 20, toTimestamp: 55 },
      { fromBlock: 7, toTimestamp: 9_000 },
    ])
      found.push((await listTransactions(pool, NETWORK, bounds, { limit: 1, offset: 0 }))?.total);
    return found;
  };
  const expected = [6_020, 6_019, 3_005, 6_015, 3_010, 8];
  assert.deepEqual(await totals(), expected);
  assert.equal(await mergeSpans(pool, id), 1);
  assert.deepEqual(await totals(), expected);
  assert.equal(Number((await pool.query('select sum(rows) as n from indexer_spans')).rows[0].n), 6_020);
});
