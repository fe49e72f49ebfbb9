import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import type pg from 'pg';
import { startIndexer } from './indexer.ts';
import { listEvents } from './read/events.ts';
import { RpcPool } from './rpc/pool.ts';
import { haltNetwork } from './store/networks.ts';
import { Partitions } from './store/partitions.ts';
import { Tail, type TailOptions } from './tail.ts';
import { Anvil } from './testing/anvil.ts';
import { type Call, FaultProxy } from './testing/fault-proxy.ts';
import {
  createIndexerDatabase,
  indexerSettings,
  NETWORK,
  TOKEN,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from './testing/setup.ts';

const log = createLogger('test', 'silent');

/** A chain of some dozen blocks that was indexed, with one transfer in its last block, and whose indexer has ended. */
async function indexOnce(stack: AsyncDisposableStack) {
  const anvil = stack.use(await Anvil.start());
  const { pool } = stack.use(await createIndexerDatabase());
  await anvil.setCode(TOKEN);
  await anvil.mine(30);
  await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(1), word(2)], word(3));
  await anvil.mine();
  await using _indexer = await startIndexer({ pool, settings: indexerSettings([anvil.url]), log });
  await untilIndexed(pool, anvil);
  return { anvil, pool };
}

async function tailOf(
  pool: pg.Pool,
  url: string | readonly string[],
  more: Partial<TailOptions> = {},
): Promise<Tail> {
  const { rows } = await pool.query<{ id: number }>('select id from indexer_networks');
  const { id } = rows[0]!;
  const { signal } = new AbortController();
  return new Tail({
    pool,
    rpc: new RpcPool({ urls: [url].flat(), timeoutMs: 60_000, restAfterLieMs: 0, log, signal }),
    partitions: new Partitions(pool, id, 1_000),
    networkId: id,
    ...{ blooms: true, finalityTag: true, finalityDepth: 1_000, reorgDepthMax: 1_000, log },
    ...more,
  });
}

/** What a reader is told. */
async function look(pool: pg.Pool) {
  const list = (await listEvents(pool, NETWORK, { contract: TOKEN }, { limit: 1, offset: 0 }))!;
  const { head, finalized } = list.freshness;
  return { transfers: list.total, head, finalized: finalized! };
}

const finalOf = async (anvil: Anvil): Promise<number> =>
  Number((await anvil.call<{ number: string }>('eth_getBlockByNumber', 'finalized', false)).number);

const readsBlock = ({ method, params }: Call) =>
  method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x');

test('no block is final by what endpoints say before it was compared with their chain', async () => {
  await using stack = new AsyncDisposableStack();
  const { anvil, pool } = await indexOnce(stack);
  const paidIn = await anvil.head();
  const before = await look(pool);
  assert.deepEqual(before, { transfers: 1, head: paidIn, finalized: await finalOf(anvil) });
  await anvil.reorg(5);
  await anvil.mine(40);
  assert.ok((await finalOf(anvil)) > paidIn);
  const proxy = stack.use(await FaultProxy.start(anvil.url));
  // It tells where the chain ends and what is final, and nothing of any block.
  proxy.choose = (calls) => (calls.some(readsBlock) ? 'unavailable' : undefined);
  await assert.rejects((await tailOf(pool, proxy.url)).step(), { code: 'UPSTREAM_UNAVAILABLE' });
  assert.deepEqual(await look(pool), { ...before, head: await anvil.head() });
  await (await tailOf(pool, anvil.url)).step();
  assert.deepEqual(await look(pool), {
    transfers: 0,
    head: await anvil.head(),
    finalized: await finalOf(anvil),
  });
});

test('an endpoint that is stuck on a fork makes none of its blocks final by what others call final', async () => {
  await using stack = new AsyncDisposableStack();
  const { anvil, pool } = await indexOnce(stack);
  const before = await look(pool);
  const further = stack.use(await Anvil.start());
  await further.mine(140);
  assert.ok((await finalOf(further)) > before.head!);
  const others: string[] = [];
  for (let index = 0; index < 2; index++) {
    const proxy = stack.use(await FaultProxy.start(further.url));
    proxy.choose = (calls) => (calls.some(readsBlock) ? 'unavailable' : undefined);
    others.push(proxy.url);
  }
  for (const finalityTag of [true, false]) {
    const tail = await tailOf(pool, [anvil.url, ...others], { finalityTag, finalityDepth: 16 });
    assert.equal(await tail.step(), 'idle');
    assert.deepEqual(await look(pool), { ...before, head: await further.head() });
    const { rows } = await pool.query<{ floor: number }>(
      'select floor_number as floor from indexer_networks',
    );
    assert.equal(rows[0]!.floor, before.finalized);
  }
});

test('nothing more becomes final while a network is halted, nor before it has gone on', async () => {
  await using stack = new AsyncDisposableStack();
  const { anvil, pool } = await indexOnce(stack);
  const before = await look(pool);
  const { rows } = await pool.query<{ id: number }>('select id from indexer_networks');
  await haltNetwork(pool, rows[0]!.id, 'REORG_BELOW_FINALITY', 'other blocks');
  await anvil.mine(40);
  const tail = await tailOf(pool, anvil.url);
  assert.equal(await tail.step(), 'halted');
  assert.deepEqual(await look(pool), { ...before, head: await anvil.head() });
  await haltNetwork(pool, rows[0]!.id, null, null);
  await tail.step();
  assert.equal((await look(pool)).finalized, await finalOf(anvil));
});

test('a number that endpoints once claimed makes no later block final', async () => {
  await using stack = new AsyncDisposableStack();
  const { anvil, pool } = await indexOnce(stack);
  const before = await look(pool);
  await pool.query('update indexer_networks set finalized_number = 1000000');
  assert.deepEqual(await look(pool), before);
  await anvil.mine(40);
  await (await tailOf(pool, anvil.url)).step();
  assert.equal((await look(pool)).finalized, await finalOf(anvil));
});

test('what can no longer be undone is final once the chain says so, also where no block comes', async () => {
  await using stack = new AsyncDisposableStack();
  const { anvil, pool } = await indexOnce(stack);
  await anvil.mine(40);
  const before = await look(pool);
  // Of a chain that does not become final.
  await (await tailOf(pool, anvil.url, { finalityTag: false, reorgDepthMax: 2 })).step();
  assert.deepEqual(await look(pool), { ...before, head: await anvil.head() });
  assert.equal(await (await tailOf(pool, anvil.url, { reorgDepthMax: 2 })).step(), 'idle');
  assert.equal((await look(pool)).finalized, await finalOf(anvil));
});
