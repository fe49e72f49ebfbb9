import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { startIndexer } from './indexer.ts';
import { RpcPool } from './rpc/pool.ts';
import { Partitions } from './store/partitions.ts';
import { Tail } from './tail.ts';
import { Anvil } from './testing/anvil.ts';
import { type Call, FaultProxy } from './testing/fault-proxy.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  indexerSettings,
  TOKEN,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from './testing/setup.ts';

const log = createLogger('test', 'silent');
const DEPTH_MAX = 10;

/** A chain of thirty blocks that was indexed, and whose indexer has ended. */
async function indexOnce(stack: AsyncDisposableStack) {
  const anvil = stack.use(await Anvil.start());
  const { pool } = stack.use(await createIndexerDatabase());
  await anvil.mine(30);
  await using _indexer = await startIndexer({ pool, settings: indexerSettings([anvil.url]), log });
  await untilIndexed(pool, anvil);
  return { anvil, pool };
}

test('an endpoint that is alone at a start moves the tip, and makes blocks final only when others have been silent for long', async () => {
  await using stack = new AsyncDisposableStack();
  const { anvil, pool } = await indexOnce(stack);
  const look = async () => {
    const { rows } = await pool.query<{ id: number; tip: number; floor: number; finalized: number }>(
      'select id, tip_number as tip, floor_number as floor, finalized_number as finalized from indexer_networks',
    );
    return rows[0]!;
  };
  const before = await look();
  await anvil.mine(40);
  await using silent = await FaultProxy.start(anvil.url);
  silent.choose = () => 'unavailable';
  const { signal } = new AbortController();
  const urls = [anvil.url, silent.url];
  const tail = new Tail({
    pool,
    rpc: new RpcPool({ urls, timeoutMs: 60_000, restAfterLieMs: 0, log, signal }),
    partitions: new Partitions(pool, before.id, 1_000),
    networkId: before.id,
    ...{ blooms: true, finalityTag: false, finalityDepth: 1_000, reorgDepthMax: DEPTH_MAX, log },
  });
  await tail.step();
  assert.deepEqual(await look(), { ...before, tip: 70 });
  const step = async () => {
    await tail.step();
    return (await look()).floor;
  };
  await until('the other one has no say', step, (floor) => floor === 70 - DEPTH_MAX);
});

test('an endpoint that has other blocks for a moment takes none back', async () => {
  await using stack = new AsyncDisposableStack();
  const { anvil, pool } = await indexOnce(stack);
  await using proxy = await FaultProxy.start(anvil.url);
  const lies = () => proxy.played.other_hash ?? 0;
  // The tip, and the newest blocks below it.
  proxy.choose = (calls) =>
    lies() < 2 && calls.some(({ params }) => Number(params[0]) > 0) ? 'other_hash' : undefined;
  const { rows } = await pool.query<{ id: number }>('select id from indexer_networks');
  const { id } = rows[0]!;
  const { signal } = new AbortController();
  const tail = new Tail({
    pool,
    rpc: new RpcPool({ urls: [proxy.url], timeoutMs: 60_000, restAfterLieMs: 0, log, signal }),
    partitions: new Partitions(pool, id, 1_000),
    networkId: id,
    ...{ blooms: true, finalityTag: false, finalityDepth: 1_000, reorgDepthMax: 1_000, log },
  });
  assert.equal(await tail.step(), 'idle');
  assert.equal(lies(), 2);
  assert.equal((await pool.query('select from indexer_undos')).rowCount, 0);
});

test('an endpoint alone that lied to a backfill halts the index, which says what has everything read again', async () => {
  await using stack = new AsyncDisposableStack();
  const anvil = stack.use(await Anvil.start());
  const { pool } = stack.use(await createIndexerDatabase());
  await anvil.setCode(TOKEN);
  await anvil.mine(20);
  await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(1), word(2)], word(3));
  await anvil.mine(40);
  const proxy = stack.use(await FaultProxy.start(anvil.url));
  const readsRange = ({ method, params }: Call) =>
    method === 'eth_getLogs' && Object.hasOwn(params[0] as object, 'fromBlock');
  // Of the first range, in which nothing happened: its last block is kept as the one before the next range.
  proxy.choose = (calls) => (calls.some(readsRange) && !proxy.played.other_hash ? 'other_hash' : undefined);
  const start = (on_restart: 'halt' | 'reset') => {
    const settings = indexerSettings([proxy.url], { finality: 'depth', verification: 'ends', on_restart });
    return startIndexer({ pool, settings, log });
  };
  const look = async () => {
    const { rows } = await pool.query<{
      code: string | null;
      message: string | null;
      genesis: string;
      reading: string;
    }>(
      'select halt_code as code, halt_message as message, genesis_hash as genesis, reading from indexer_networks',
    );
    return rows[0];
  };
  const indexer = await start('halt');
  const halted = await until('it halts', look, (network) => network?.code === 'REORG_BELOW_FINALITY').finally(
    () => indexer[Symbol.asyncDispose](),
  );
  assert.match(halted!.message!, /"on_restart": "reset"/);
  await using _again = await start('reset');
  await untilIndexed(pool, anvil);
  assert.equal(await compareWithChain(pool, anvil), 1);
  assert.equal(proxy.played.other_hash, 1);
  const { reading, ...network } = (await look())!;
  assert.deepEqual(network, { code: null, message: null, genesis: halted!.genesis });
  assert.notEqual(reading, halted!.reading, 'whoever follows a contract begins anew');
});
