import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { startIndexer } from './indexer.ts';
import { findFreshness, stateOf } from './read/status.ts';
import type { NetworkSettings } from './settings.ts';
import { Anvil } from './testing/anvil.ts';
import { MASS_EMITTER_CODE, massInput } from './testing/contracts.ts';
import { type Call, FaultProxy, OTHER_HASH } from './testing/fault-proxy.ts';
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

async function growTransfers(anvil: Anvil, blocks: number): Promise<void> {
  for (let block = 0; block < blocks; block++) {
    await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(1), word(2)], word(block));
    await anvil.mine();
  }
}

describe('requests that fail', () => {
  test('a reorganisation of hundreds of blocks is undone although every endpoint fails each seventh request', async () => {
    await using anvil = await Anvil.start();
    await using database = await createIndexerDatabase();
    const { pool } = database;
    await anvil.setCode(TOKEN);
    await growTransfers(anvil, 30);
    await anvil.mine(600);
    await using first = await FaultProxy.start(anvil.url);
    await using second = await FaultProxy.start(anvil.url);
    let requests = 0;
    const limits = { finality: 'depth' as const, finality_depth: 1_000, reorg_depth_max: 2_000 };
    await using _indexer = await startIndexer({
      pool,
      settings: indexerSettings([first.url, second.url], limits),
      log,
    });
    await untilIndexed(pool, anvil);
    // Nobody sees the chain on the way, when it is short.
    for (const proxy of [first, second]) proxy.choose = () => 'unavailable';
    await anvil.reorg(620);
    await growTransfers(anvil, 3);
    for (const proxy of [first, second])
      proxy.choose = () => (requests++ % 7 === 0 ? 'unavailable' : undefined);
    await untilIndexed(pool, anvil);
    const { rows } = await pool.query('select depth from indexer_undos');
    assert.equal(rows.length, 1);
    assert.ok(rows[0].depth >= 600, `${rows[0].depth} blocks were undone`);
    assert.ok((await compareWithChain(pool, anvil)) >= 10);
  });

  test('a block with more logs than one answer may have holds up nobody, at the head and behind it', async () => {
    await using anvil = await Anvil.start();
    await using database = await createIndexerDatabase();
    const { pool } = database;
    await anvil.setCode(TOKEN);
    await anvil.setCode(OTHER, MASS_EMITTER_CODE);
    const crowd = async () => {
      await anvil.send(OTHER, massInput(60, 1));
      await growTransfers(anvil, 1);
    };
    await growTransfers(anvil, 5);
    await crowd();
    await growTransfers(anvil, 40);
    await using proxy = await FaultProxy.start(anvil.url);
    proxy.logsMax = 50;
    const abi = ['event Transfer(address indexed from, address indexed to, uint256 value)'];
    const contracts = [TOKEN, OTHER].map((address) => ({ address, abi }));
    await using _indexer = await startIndexer({
      pool,
      settings: indexerSettings([proxy.url], { contracts }),
      log,
    });
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 106);
    await crowd();
    await growTransfers(anvil, 1);
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 168);
  });

  test('one in seven costs no step of the head', async () => {
    await using anvil = await Anvil.start();
    await using database = await createIndexerDatabase();
    const { pool } = database;
    await anvil.setCode(TOKEN);
    await growTransfers(anvil, 10);
    await using first = await FaultProxy.start(anvil.url);
    await using second = await FaultProxy.start(anvil.url);
    const settings = indexerSettings([first.url, second.url]);
    await using indexer = await startIndexer({ pool, settings, log });
    await untilIndexed(pool, anvil);
    let [requests, resting] = [0, 0];
    for (const proxy of [first, second])
      proxy.choose = () => {
        resting += indexer.report('anvil').filter((one) => one.resting).length;
        return requests++ % 7 === 0 ? 'unavailable' : undefined;
      };
    for (let block = 0; block < 12; block++) {
      await growTransfers(anvil, 1);
      await untilIndexed(pool, anvil);
    }
    assert.equal(resting, 0, 'an endpoint was left alone');
    const failed = (first.played.unavailable ?? 0) + (second.played.unavailable ?? 0);
    assert.ok(failed >= 10, `${failed} requests failed`);
    assert.equal(await compareWithChain(pool, anvil), 22);
  });
});

test('endpoints that all go silent are a stall also where everything was read; a chain without new blocks is none', async () => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await using proxy = await FaultProxy.start(anvil.url);
  const settings = indexerSettings([proxy.url], { stall_ms: 1_000 });
  const lines: string[] = [];
  const told = createLogger('test', 'error', { write: (line) => lines.push(line) });
  await using indexer = await startIndexer({ pool, settings, log: told });
  await untilIndexed(pool, anvil);
  const progressMs = async () => (await findFreshness(pool, NETWORK))!.progressAt.getTime();
  const before = await progressMs();
  await until('it is seen again that all is read', progressMs, (ms) => ms > before);
  const state = async () =>
    stateOf((await findFreshness(pool, NETWORK))!, indexer.stallMs(NETWORK), Date.now());
  proxy.choose = () => 'unavailable';
  await until('it stalls', state, (one) => one === 'stalled');
  assert.equal((await findFreshness(pool, NETWORK))!.lag, 0);
  await until('it is said', () => indexer.health().get(NETWORK)?.isStalled === true);
  const { endpoints } = JSON.parse(lines.find((line) => line.includes('makes no progress'))!);
  const failed = Object.entries(endpoints as Record<string, Record<string, number>>);
  assert.deepEqual(
    failed.map(([name, failures]) => [name, Object.keys(failures)]),
    [[`${new URL(proxy.url).host}#0`, ['unreachable']]],
  );
  proxy.choose = () => undefined;
  await until('it goes on', state, (one) => one === 'live');
});

describe('a chain that is replaced where it was final', () => {
  const READ_TO = 60;
  const asksHead = (calls: readonly Call[]) => calls.some(({ params }) => params[0] === 'latest');
  const readsBeyond = (calls: readonly Call[]) =>
    calls.some(({ method, params: [filter] }) => {
      const { fromBlock } = (filter ?? {}) as { fromBlock?: string };
      return method === 'eth_getLogs' && Number(fromBlock) > READ_TO;
    });

  for (const isRestarted of [false, true])
    test(`halts a backfill on its way${isRestarted ? ', also one that was begun by another process' : ''}, while the head cannot be seen`, async () => {
      await using stack = new AsyncDisposableStack();
      const anvil = stack.use(await Anvil.start());
      const { pool } = stack.use(await createIndexerDatabase());
      await anvil.setCode(TOKEN);
      await growTransfers(anvil, 120);
      const proxy = stack.use(await FaultProxy.start(anvil.url));
      const settings = indexerSettings([proxy.url], {
        finality: 'depth',
        range_blocks_max: 10,
        contracts: [
          {
            address: TOKEN,
            abi: ['event Transfer(address indexed from, address indexed to, uint256 value)'],
          },
        ],
      });
      proxy.choose = (calls) => (readsBeyond(calls) ? 'rate_limit' : undefined);
      let indexer = await startIndexer({ pool, settings, log });
      stack.defer(() => indexer[Symbol.asyncDispose]());
      const nextBlock = async () =>
        Number((await pool.query('select next_block from indexer_scans')).rows[0].next_block);
      // It goes on with every range that begins below.
      const read = await until('a part is read', nextBlock, (next) => next > READ_TO);
      await until(
        'the rest is asked for',
        () => proxy.played.rate_limit ?? 0,
        (count) => count > 3,
      );
      // From now on nobody sees the head, and the blocks before `read` are other ones.
      let isCut = true;
      proxy.choose = (calls) => (isCut || asksHead(calls) ? 'rate_limit' : undefined);
      await anvil.reorg((await anvil.head()) - read + 20);
      if (isRestarted) {
        await indexer[Symbol.asyncDispose]();
        indexer = await startIndexer({ pool, settings, log });
      }
      isCut = false;
      const haltCode = async () =>
        (await pool.query('select halt_code from indexer_networks')).rows[0].halt_code;
      await until('it halts', async () => (await haltCode()) !== null);
      assert.equal(await haltCode(), 'REORG_BELOW_FINALITY');
      assert.equal(await nextBlock(), read);
    });
});

describe('one endpoint of three that has other blocks', () => {
  const asksOld = (calls: readonly Call[]) =>
    calls.some(({ method, params }) => method === 'eth_getBlockByNumber' && Number(params[0]) > 0);

  async function startThree(stack: AsyncDisposableStack, more: Partial<NetworkSettings> = {}) {
    const anvil = stack.use(await Anvil.start());
    const { pool } = stack.use(await createIndexerDatabase());
    await anvil.setCode(TOKEN);
    await growTransfers(anvil, 30);
    const proxies = [];
    for (let place = 0; place < 3; place++) proxies.push(stack.use(await FaultProxy.start(anvil.url)));
    const [liar, ...honest] = proxies as [FaultProxy, FaultProxy, FaultProxy];
    liar.choose = (calls) => (asksOld(calls) ? 'other_hash' : undefined);
    const settings = indexerSettings(
      proxies.map(({ url }) => url),
      { lie_rest_ms: 1_000, ...more },
    );
    return { anvil, pool, liar, honest, settings };
  }

  test('makes nothing final, however fast it is', async () => {
    await using stack = new AsyncDisposableStack();
    const { anvil, pool, honest, settings } = await startThree(stack);
    // Who answers sooner is asked first.
    for (const proxy of honest) proxy.delayMs = 100;
    const indexer = stack.use(await startIndexer({ pool, settings, log }));
    const start = async () =>
      (await pool.query('select hash from indexer_blocks order by number limit 1')).rows[0]?.hash;
    assert.notEqual(await until('the window begins', start), OTHER_HASH);
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 30);
    const lies = indexer.report('anvil').map(({ failures }) => failures.lie ?? 0);
    assert.ok(lies[0]! > 0 && lies[1] === 0 && lies[2] === 0, `lies: ${lies}`);
  });

  test('says neither how the chain begins nor where reading does while no other answers', async () => {
    await using stack = new AsyncDisposableStack();
    const { anvil, pool, liar, honest, settings } = await startThree(stack);
    const look = async () => (await pool.query('select * from indexer_networks')).rows[0];
    const lies = () => liar.played.other_hash ?? 0;
    for (const proxy of honest) proxy.choose = () => 'unavailable';
    liar.choose = () => 'other_hash';
    stack.use(await startIndexer({ pool, settings, log }));
    await until('it is asked again', () => lies() > 3);
    assert.equal((await look()).genesis_hash, null);

    // From now on the others say which chain it is, and nothing of any later block.
    const asksHead = (calls: readonly Call[]) => calls.some(({ params }) => params[0] === 'latest');
    for (const proxy of honest)
      proxy.choose = (calls) => (asksOld(calls) || asksHead(calls) ? 'unavailable' : undefined);
    liar.choose = (calls) => (asksOld(calls) || asksHead(calls) ? 'other_hash' : undefined);
    const genesis = async () => (await look()).genesis_hash;
    assert.notEqual(await until('it is known which chain it is', genesis), OTHER_HASH);
    const said = lies();
    await until('it is asked where reading begins', () => lies() > said + 3);
    const { tip_number, finalized_number } = await look();
    assert.deepEqual([tip_number, finalized_number], [null, null]);
    const freshness = (await findFreshness(pool, NETWORK))!;
    const stallMs = 60_000;
    assert.equal(stateOf(freshness, stallMs, freshness.progressAt.getTime() + stallMs), 'catching_up');
    assert.equal(stateOf(freshness, stallMs, freshness.progressAt.getTime() + stallMs + 1), 'stalled');

    for (const proxy of honest) proxy.choose = () => undefined;
    await untilIndexed(pool, anvil);
    assert.equal(await compareWithChain(pool, anvil), 30);
  });

  test('does not say which chain it is: nothing is read anew', async () => {
    await using stack = new AsyncDisposableStack();
    const { anvil, pool, liar, settings } = await startThree(stack, { on_restart: 'reset' });
    const alone = { ...settings, networks: [{ ...settings.networks[0]!, endpoints: [anvil.url] }] };
    {
      await using _indexer = await startIndexer({ pool, settings: alone, log });
      await untilIndexed(pool, anvil);
    }
    const genesis = async () =>
      (await pool.query('select genesis_hash from indexer_networks')).rows[0].genesis_hash;
    const before = await genesis();
    liar.choose = (calls) => (calls.some(({ params }) => params[0] === '0x0') ? 'other_hash' : undefined);
    const indexer = stack.use(await startIndexer({ pool, settings, log }));
    await anvil.mine();
    await untilIndexed(pool, anvil);
    assert.equal(await genesis(), before);
    assert.equal(indexer.report('anvil')[0]!.failures.lie, 1);
  });

  test('does not say it where no other answers, at a start or later', async () => {
    await using stack = new AsyncDisposableStack();
    const { anvil, pool, liar, honest, settings } = await startThree(stack, { on_restart: 'reset' });
    liar.choose = () => undefined;
    const look = async () => (await pool.query('select * from indexer_networks')).rows[0];
    {
      await using _indexer = await startIndexer({ pool, settings, log });
      await untilIndexed(pool, anvil);
    }
    const { genesis_hash: genesis, undo_seq: undone } = await look();
    const leaveAlone = () => {
      for (const proxy of honest) proxy.choose = () => 'unavailable';
      liar.choose = () => 'other_hash';
    };
    const askedOften = () => (liar.played.other_hash ?? 0) > 2;
    leaveAlone();
    stack.use(await startIndexer({ pool, settings, log }));
    await until('it is asked', askedOften);
    for (const proxy of [liar, ...honest]) proxy.choose = () => undefined;
    await anvil.mine();
    await untilIndexed(pool, anvil);
    leaveAlone();
    const played = liar.played.other_hash!;
    await until('it is asked again', () => liar.played.other_hash! > played + 20);
    assert.equal((await look()).halt_code, null);
    for (const proxy of [liar, ...honest]) proxy.choose = () => undefined;
    await anvil.mine();
    await untilIndexed(pool, anvil);
    const after = await look();
    assert.deepEqual([after.genesis_hash, after.undo_seq], [genesis, undone]);
    assert.equal(await compareWithChain(pool, anvil), 30);
  });

  test('halts nothing for longer than others join it', async () => {
    await using stack = new AsyncDisposableStack();
    const { anvil, pool, liar, honest, settings } = await startThree(stack);
    const [joins, stays] = honest as [FaultProxy, FaultProxy];
    liar.choose = () => undefined;
    stack.use(await startIndexer({ pool, settings, log }));
    await untilIndexed(pool, anvil);
    const code = async () => (await pool.query('select halt_code from indexer_networks')).rows[0].halt_code;
    const lies: Readonly<Record<string, FaultProxy['choose']>> = {
      CHAIN_RESTARTED: () => 'other_hash',
      REORG_BELOW_FINALITY: (calls) => (asksOld(calls) ? 'other_hash' : undefined),
    };
    for (const [halt, lie] of Object.entries(lies)) {
      liar.choose = joins.choose = lie;
      // Who stays is asked for the head as well, but not first.
      stays.delayMs = 20;
      await until(`it halts: ${halt}`, code, (one) => one === halt);
      liar.choose = () => 'unavailable';
      joins.choose = () => undefined;
      await until('it goes on', code, (one) => one === null);
      await anvil.mine();
      await untilIndexed(pool, anvil);
    }
    assert.equal(await compareWithChain(pool, anvil), 30);
  });

  test('is no witness against the others: where it agrees with what is stored, the network halts', async () => {
    await using stack = new AsyncDisposableStack();
    const { anvil, pool, liar, settings } = await startThree(stack);
    {
      const alone = { ...settings, networks: [{ ...settings.networks[0]!, endpoints: [anvil.url] }] };
      await using _indexer = await startIndexer({ pool, settings: alone, log });
      await untilIndexed(pool, anvil);
    }
    await pool.query('update indexer_blocks set hash = $1', [OTHER_HASH]);
    await pool.query('update indexer_networks set tip_hash = $1', [OTHER_HASH]);
    liar.delayMs = 100;
    stack.use(await startIndexer({ pool, settings, log }));
    const code = async () => (await pool.query('select halt_code from indexer_networks')).rows[0].halt_code;
    await until('it halts', code, (one) => one !== null);
    assert.equal(await code(), 'REORG_BELOW_FINALITY');
  });
});
