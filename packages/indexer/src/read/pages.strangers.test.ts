import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { parseDeclaration } from '../abi/declaration.ts';
import { ABI_LIMITS } from '../abi/types.ts';
import { ensureNetwork } from '../store/networks.ts';
import { Partitions } from '../store/partitions.ts';
import { SETTINGS_OWNER } from '../store/scans.ts';
import { createIndexerDatabase, NETWORK, OTHER, TOKEN } from '../testing/setup.ts';
import { watchContract } from '../watch.ts';
import { parseArguments } from './arguments.ts';
import { readContractEvents } from './contract-events.ts';
import { listEvents } from './events.ts';
import { findFreshness, listCoverageOf } from './status.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const SAID = 'event Said(string text)';
const TIP = 100;

interface Written {
  readonly contract?: string;
  readonly fromBlock: number;
  readonly toBlock: number;
  readonly perBlock?: number;
  /** SQL of the text. */
  readonly text: string;
}

/** A network that is read up to its tip, without a chain: rows are written as a test likes them. */
async function createNetwork() {
  const database = await createIndexerDatabase();
  const { pool } = database;
  const { id: networkId } = await ensureNetwork(pool, NETWORK, 1);
  const ask = (contract: string, abi: readonly string[]) =>
    watchContract(pool, { network: NETWORK, contract, abi, startBlock: 0, owner: SETTINGS_OWNER });
  for (const contract of [TOKEN, OTHER]) await ask(contract, [SAID]);
  await pool.query('update indexer_scans set live = true');
  await pool.query('update indexer_networks set tip_number = $1, head_number = $1', [TIP]);
  await new Partitions(pool, networkId, 1_000).ensure('events', 0, TIP);
  const write = async ({ contract = TOKEN, fromBlock, toBlock, perBlock = 1, text }: Written) => {
    const which = `from indexer_contracts c cross join indexer_event_types t where c.address = $1 and t.name = 'Said'`;
    await pool.query(
      `insert into indexer_events_n${networkId} (block_number, log_index, contract_id, event_id, "timestamp", transaction_hash, args)
       select b, i, ids.contract, ids.event, b, '', jsonb_build_object('text', ${text})
       from (select c.id as contract, t.id as event ${which}) ids cross join generate_series($2::bigint, $3::bigint) b
         cross join generate_series(1, $4::integer) i order by b, i`,
      [contract, fromBlock, toBlock, perBlock],
    );
    await pool.query(
      `insert into indexer_spans (network_id, contract_id, event_id, from_block, to_block, from_timestamp, to_timestamp, rows)
       select ${networkId}, c.id, t.id, $2::bigint, $3::bigint, $2, $3, ($3 - $2 + 1) * $4::bigint ${which}`,
      [contract, fromBlock, toBlock, perBlock],
    );
  };
  return { ...{ pool, networkId, ask, write }, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}

/** Notes what is asked and answered. */
function record(pool: pg.Pool) {
  const asked: unknown[] = [];
  const answered: unknown[] = [];
  const query = async (on: pg.Pool | pg.PoolClient, text: string, values: unknown[]) => {
    asked.push(...(values ?? []));
    const answer = await on.query(text, values);
    answered.push(...(answer.rows ?? []));
    return answer;
  };
  const recording = {
    query: (text: string, values: unknown[]) => query(pool, text, values),
    connect: async () => {
      const client = await pool.connect();
      return {
        query: (text: string, values: unknown[]) => query(client, text, values),
        release: (error?: Error) => client.release(error),
      };
    },
  } as unknown as pg.Pool;
  return { ...{ asked, answered }, pool: recording };
}

test('a page of long logs is weighed before it is read', async () => {
  await using network = await createNetwork();
  const { pool, write } = network;
  await write({ fromBlock: 1, toBlock: 5, text: `repeat('x', ${300 * KIB})` });
  const held: number[] = [];
  const hold = (bytes: number) => void held.push(bytes);
  const light = await listEvents(pool, NETWORK, {}, { limit: 3, offset: 0 }, { hold });
  assert.deepEqual([light?.items.length, light?.total, held], [3, 5, []]);
  for (const args of [undefined, parseArguments({ text: 'x'.repeat(300 * KIB) })]) {
    const heavy = await listEvents(pool, NETWORK, { args }, { limit: 5, offset: 0 }, { hold });
    assert.deepEqual(
      heavy?.items.map((item) => [item.block_number, item.contract, String(item.args.text).length]),
      [5, 4, 3, 2, 1].map((block) => [block, TOKEN, 300 * KIB]),
    );
    const [bytes] = held.splice(0);
    assert.ok(bytes! > 5 * 300 * KIB && bytes! < 5 * 301 * KIB, `${bytes} bytes`);
  }
  const { pool: recording, answered } = record(pool);
  const refuse = () => {
    throw new Error('no room');
  };
  await assert.rejects(
    listEvents(recording, NETWORK, {}, { limit: 5, offset: 0 }, { hold: refuse }),
    /no room/,
  );
  assert.ok(JSON.stringify(answered).length < 10 * KIB);
});

test('a look at the events of a contract takes no more text than a node can hold, in whole blocks', async () => {
  await using network = await createNetwork();
  const { pool, write } = network;
  await write({ fromBlock: 1, toBlock: 3, text: `repeat('x', ${17 * MIB})` });
  await write({ fromBlock: 4, toBlock: 4, perBlock: 3, text: `'short'` });
  const source = { network: NETWORK, contract: TOKEN, event: parseDeclaration(SAID) };
  const look = async (fromBlock: number, limit: number) => {
    const found = await readContractEvents(pool, source, fromBlock, limit);
    return [found?.events.map(({ blockNumber }) => blockNumber), found?.readTo, found?.isCut];
  };
  assert.deepEqual(await look(0, 500), [[1, 2], 2, true]);
  assert.deepEqual(await look(3, 500), [[3, 4, 4, 4], TIP, false]);
  assert.deepEqual(await look(3, 2), [[3, 4, 4, 4], 4, true]);
  assert.deepEqual(await look(5, 2), [[], TIP, false]);
});

test('declarations of which there are no logs cost nobody anything, however many strangers left behind', async () => {
  await using network = await createNetwork();
  const { pool, ask, write } = network;
  await write({ fromBlock: 1, toBlock: 2, text: `'hello'` });
  await ask(
    OTHER,
    Array.from({ length: ABI_LIMITS.eventsPerAbi }, (_, n) => `event Said(string text${n})`),
  );
  const { pool: recording, asked } = record(pool);
  for (const eventName of ['Said', 'Said(string)'])
    for (const contract of [undefined, TOKEN]) {
      const list = await listEvents(recording, NETWORK, { contract, eventName }, { limit: 10, offset: 0 });
      assert.deepEqual([list?.total, list?.items.map(({ args }) => args.text)], [2, ['hello', 'hello']]);
    }
  const source = { network: NETWORK, contract: TOKEN, event: parseDeclaration(SAID) };
  assert.equal((await readContractEvents(recording, source, 0, 500))?.events.length, 2);
  const lengths = asked.map((value) => (Array.isArray(value) ? value.length : 0));
  assert.ok(Math.max(...lengths) <= 2, `${Math.max(...lengths)} event types`);
});

test('how far a network is, is found out without all that strangers asked for', async () => {
  await using network = await createNetwork();
  const { pool, networkId, ask } = network;
  for (let n = 0; n < 20; n++) await ask(`0x${String(n).padStart(40, '0')}`, [SAID]);
  // One of each sort: at the tip, behind, further behind, and at its end.
  await pool.query(
    `update indexer_scans set live = id > 4, next_block = case id when 1 then 50 when 2 then 40 else 31 end,
       to_block = case id when 2 then 60 when 3 then 30 when 4 then 30 end`,
  );
  const { pool: recording, answered } = record(pool);
  const indexed = async () => (await findFreshness(recording, NETWORK))?.indexed;
  assert.equal(await indexed(), 39);
  await pool.query('update indexer_scans set next_block = 61 where id = 2');
  assert.equal(await indexed(), 49);
  await pool.query('update indexer_scans set live = true where id = 1');
  assert.equal(await indexed(), TIP);
  const coverage = await listCoverageOf(recording, networkId, { address: TOKEN });
  assert.deepEqual(
    coverage.map(({ contract, toBlock }) => [contract, toBlock]),
    [[TOKEN, TIP]],
  );
  assert.ok(answered.length <= 3 * 3 + 2, `${answered.length} rows`);
});

test('there are at least as many rows as a page shows', async () => {
  await using network = await createNetwork();
  const { pool, write } = network;
  // More than are looked at for an argument, of a contract that is not asked for: they are the first that are found.
  await write({ fromBlock: 50, toBlock: 59, perBlock: 1_001, text: `'frequent'` });
  await write({ contract: OTHER, fromBlock: 90, toBlock: 92, perBlock: 100, text: `'frequent'` });
  const filter = { contract: OTHER, args: parseArguments({ text: 'frequent' }) };
  const page = await listEvents(pool, NETWORK, filter, { limit: 100, offset: 200 });
  assert.deepEqual([page?.items.length, page?.totalIsExact], [100, false]);
  assert.ok(page!.total >= 300, `${page?.total} rows`);
  const beyond = await listEvents(pool, NETWORK, filter, { limit: 100, offset: 300 });
  assert.deepEqual([beyond?.items, beyond?.totalIsExact], [[], false]);
});

/**
 * Looks at rows by their arguments that take so long, by a clock of their own: the database's own, which the tests' machine may hold up,
 * ends nothing.
 */
function slow(pool: pg.Pool, lookMs: number) {
  const clock = { ms: 0, lookMs };
  const told: number[] = [];
  const connect = async () => {
    const client = await pool.connect();
    const query = (text: string, values?: unknown[]) => {
      if (text.includes('found as materialized')) clock.ms += clock.lookMs;
      const limit = /statement_timeout = (\d+)/.exec(text);
      if (limit) told.push(Number(limit[1]));
      return client.query(text.replace(/statement_timeout = \d+/, 'statement_timeout = 0'), values);
    };
    return { query, release: (error?: Error) => client.release(error) };
  };
  return { ...{ clock, told }, now: () => clock.ms, pool: { connect } as unknown as pg.Pool };
}

const PAGE = { limit: 5, offset: 0 };
const RARE = { args: parseArguments({ text: 'rare' }) };

test('all looks at the partitions of a chain have one budget of time, and a list that it is too short for is refused', async () => {
  await using network = await createNetwork();
  await new Partitions(network.pool, network.networkId, 1_000).ensure('events', 0, 14_999);
  await network.write({ fromBlock: 1, toBlock: 1, text: `'rare'` });
  // One partition, two, four, eight.
  const { pool, clock, told, now } = slow(network.pool, 2_000);
  await assert.rejects(listEvents(pool, NETWORK, RARE, PAGE, { now }), { code: 'LIST_TOO_COSTLY' });
  assert.deepEqual([clock.ms, told], [6_000, [5_000, 3_000, 1_000]]);
  clock.lookMs = 1_000;
  const list = await listEvents(pool, NETWORK, RARE, PAGE, { now });
  assert.deepEqual([list?.total, list?.totalIsExact, list?.items.length], [1, true, 1]);
  told.length = 0;
  clock.lookMs = 100;
  await listEvents(pool, NETWORK, RARE, PAGE, { now });
  assert.deepEqual(told, [5_000], 'what is cheap costs no further statement');
});

test('where no turn is free, a list that is cheap needs none, and others wait for theirs and hold nothing', async () => {
  await using network = await createNetwork();
  await new Partitions(network.pool, network.networkId, 1_000).ensure('events', 0, 2_999);
  await network.write({ fromBlock: 1, toBlock: 2, text: `'rare'` });
  await network.write({ fromBlock: 3, toBlock: 7, text: `repeat('x', ${300 * KIB})` });
  const { pool, clock, told, now } = slow(network.pool, 100);
  const log: string[] = [];
  const turns = {
    isFree: () => false,
    async take() {
      log.push('taken');
      return { [Symbol.dispose]: () => void log.push('given back') };
    },
    async takeTry() {
      log.push('tried');
      return { [Symbol.dispose]: () => void log.push('over') };
    },
  };
  const hold = () => void log.push('held');
  const ask = async (filter: Parameters<typeof listEvents>[2]) => {
    for (const list of [log, told]) list.length = 0;
    const list = await listEvents(pool, NETWORK, filter, PAGE, { hold, turns, now });
    return [list?.items.length, told[0], log.join(', ')];
  };
  assert.deepEqual(await ask(RARE), [2, 250, 'tried, over']);
  clock.lookMs = 300;
  assert.deepEqual(await ask(RARE), [2, 250, 'tried, over, taken, given back']);
  assert.deepEqual(await ask({}), [5, 250, 'tried, over, taken, held, given back']);
  turns.isFree = () => true;
  assert.deepEqual(await ask(RARE), [2, 5_000, 'taken, given back']);
});
