import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { startIndexer } from './indexer.ts';
import { Anvil } from './testing/anvil.ts';
import { FaultProxy } from './testing/fault-proxy.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  indexerSettings,
  seeded,
  TOKEN,
  untilIndexed,
} from './testing/setup.ts';
import { CONTRACTS, grow, reorganise, runStorm } from './testing/storm.ts';

const log = createLogger('test', 'silent');
describe('the tables equal a read of the final chain', () => {
  // storm.soak.test.ts has the other seeds and depths.
  test('after a storm of blocks, reorganisations and faults of two endpoints (seed 1)', () => runStorm(1));

  test('reorganisations of depths 1, 2, 13, 33 and 64', () => reorganise([1, 2, 13, 33, 64]));
});

describe('what cannot be made right is said', () => {
  const start = async (anvil: Anvil, urls: string[], more: Parameters<typeof indexerSettings>[1] = {}) => {
    const database = await createIndexerDatabase();
    const { pool } = database;
    const open = (endpoints: string[]) =>
      startIndexer({ pool, settings: indexerSettings(endpoints, { contracts: CONTRACTS, ...more }), log });
    let indexer = await open(urls);
    return {
      pool,
      get indexer() {
        return indexer;
      },
      async restart(endpoints: string[]) {
        await indexer[Symbol.asyncDispose]();
        indexer = await open(endpoints);
      },
      haltCode: async () => (await pool.query('select halt_code from indexer_networks')).rows[0].halt_code,
      indexed: () => untilIndexed(pool, anvil),
      async [Symbol.asyncDispose]() {
        await indexer[Symbol.asyncDispose]();
        await database[Symbol.asyncDispose]();
      },
    };
  };

  test('a reorganisation below finality halts the network and rewrites nothing', async () => {
    const random = seeded(7);
    await using anvil = await Anvil.start();
    await anvil.setCode(TOKEN);
    await grow(anvil, random, 80);
    await using run = await start(anvil, [anvil.url]);
    await run.indexed();
    const count = async () => (await run.pool.query('select sum(rows) as n from indexer_spans')).rows[0].n;
    const before = await count();
    await anvil.reorg(40);
    await grow(anvil, random, 1);
    await until('it halts', run.haltCode, (code) => code === 'REORG_BELOW_FINALITY');
    assert.equal(await count(), before);
  });

  test('a chain that was started anew is recognised; where settings say so it is read again', async () => {
    const random = seeded(8);
    const anvil = await Anvil.start(['--timestamp', '1700000000']);
    await anvil.setCode(TOKEN);
    await grow(anvil, random, 40);
    await using proxy = await FaultProxy.start(anvil.url);
    await using run = await start(anvil, [proxy.url], { on_restart: 'reset' });
    await run.indexed();
    await using fresh = await Anvil.start(['--timestamp', '1700009999']);
    await fresh.setCode(TOKEN);
    await grow(fresh, random, 70);
    proxy.target = fresh.url;
    await anvil[Symbol.asyncDispose]();
    await untilIndexed(run.pool, fresh);
    await compareWithChain(run.pool, fresh);
  });

  test('the only endpoint holds logs back: its receipts give it away, and nothing false is kept', async () => {
    const random = seeded(9);
    await using anvil = await Anvil.start();
    await anvil.setCode(TOKEN);
    await grow(anvil, random, 50);
    await using proxy = await FaultProxy.start(anvil.url);
    proxy.choose = () => 'empty_logs';
    await using run = await start(anvil, [proxy.url]);
    await until(
      'it is caught',
      () => run.indexer.report('anvil')[0]?.failures.lie ?? 0,
      (lies) => lies > 2,
    );
    proxy.choose = () => undefined;
    await run.indexed();
    await compareWithChain(run.pool, anvil);
  });

  test('a lone endpoint on another fork cannot take back what others have', async () => {
    const random = seeded(10);
    await using anvil = await Anvil.start();
    await anvil.setCode(TOKEN);
    await grow(anvil, random, 50);
    await using liar = await FaultProxy.start(anvil.url);
    await using honest = await FaultProxy.start(anvil.url);
    await using run = await start(anvil, [liar.url, honest.url]);
    await run.indexed();
    await using fork = await Anvil.start();
    await fork.setCode(TOKEN);
    await grow(fork, random, 50);
    // Work goes to whoever is fast.
    honest.delayMs = 10;
    liar.target = fork.url;
    await until(
      'it is caught',
      () => run.indexer.report('anvil')[0]?.failures.lie ?? 0,
      (lies) => lies > 2,
    );
    await grow(anvil, random, 3);
    await run.indexed();
    await compareWithChain(run.pool, anvil);
    assert.deepEqual((await run.pool.query('select from indexer_undos')).rowCount, 0);
  });

  test('an endpoint that never says where it stands contradicts nobody', async () => {
    const random = seeded(11);
    await using anvil = await Anvil.start();
    await anvil.setCode(TOKEN);
    await grow(anvil, random, 50);
    // One answers everything but where it stands, the other nothing but that.
    await using mute = await FaultProxy.start(anvil.url);
    await using herald = await FaultProxy.start(anvil.url);
    const asksHead: FaultProxy['choose'] = (calls) =>
      calls.some(({ params }) => params[0] === 'latest') ? 'rate_limit' : undefined;
    mute.choose = asksHead;
    herald.choose = (calls) => (asksHead(calls) ? undefined : 'rate_limit');
    // Where reading begins both would have to say.
    await using run = await start(anvil, [anvil.url]);
    await run.indexed();
    await run.restart([mute.url, herald.url]);
    await grow(anvil, random, 3);
    const refusals = () => mute.played.rate_limit ?? 0;
    await until('it is asked again and again', refusals, (count) => count > 20);
    assert.equal(await run.haltCode(), null);
    mute.choose = () => undefined;
    await run.indexed();
    await compareWithChain(run.pool, anvil);
  });

  test('endpoints that all fell behind what was final are waited for', async () => {
    const random = seeded(12);
    const genesis = ['--timestamp', '1700000000'];
    await using anvil = await Anvil.start(genesis);
    await anvil.setCode(TOKEN);
    await grow(anvil, random, 50);
    await using proxy = await FaultProxy.start(anvil.url);
    await using run = await start(anvil, [proxy.url]);
    await run.indexed();
    await using behind = await Anvil.start(genesis);
    proxy.target = behind.url;
    await until(
      'it is seen',
      () => run.indexer.report('anvil')[0]?.head,
      (head) => head === 0,
    );
    const seen = proxy.requests;
    await until(
      'it is looked at again',
      () => proxy.requests - seen,
      (more) => more > 3,
    );
    assert.equal(await run.haltCode(), null);
    proxy.target = anvil.url;
    await grow(anvil, random, 3);
    await run.indexed();
    await compareWithChain(run.pool, anvil);
  });

  test('endpoints of another chain than the settings name', async () => {
    await using anvil = await Anvil.start();
    await using run = await start(anvil, [anvil.url], { chain_id: 1 });
    await until('it halts', run.haltCode, (code) => code === 'WRONG_CHAIN');
  });
});
