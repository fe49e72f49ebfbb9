import assert from 'node:assert/strict';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { startIndexer } from '../indexer.ts';
import { parseCursor } from '../read/cursor.ts';
import { listEvents } from '../read/events.ts';
import { Anvil } from './anvil.ts';
import { TRANSFER } from './contracts.ts';
import { type Fault, FaultProxy } from './fault-proxy.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  indexerSettings,
  NETWORK,
  OTHER,
  seeded,
  TOKEN,
  TRANSFER_TOPIC,
  untilIndexed,
  word,
} from './setup.ts';

const log = createLogger('test', 'silent');
const ALICE = `0x${'a1'.repeat(20)}`;
const ANONYMOUS = 'event Hidden(address indexed who, uint256 x) anonymous';

export const CONTRACTS = [
  { address: TOKEN, abi: [TRANSFER], transactions: true },
  { address: OTHER, abi: [ANONYMOUS, 'event Ping()'], start_block: 5 },
];

/** One log of some kind: wanted, anonymous, of an undeclared event, or of the wrong form. */
async function emitSome(anvil: Anvil, random: () => number): Promise<void> {
  const value = Math.floor(random() * 1e9);
  const kind = Math.floor(random() * 5);
  if (kind <= 1) await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(ALICE), word(value)], word(value));
  else if (kind === 2) await anvil.emit(OTHER, [word(ALICE)], word(value));
  else if (kind === 3) await anvil.emit(TOKEN, [word(value)], '0x');
  else await anvil.emit(TOKEN, [TRANSFER_TOPIC], word(value));
}

export async function grow(anvil: Anvil, random: () => number, blocks: number): Promise<void> {
  for (let block = 0; block < blocks; block++) {
    for (let count = Math.floor(random() * 4); count > 0; count--) await emitSome(anvil, random);
    await anvil.mine();
  }
}

/** Takes some of the newest blocks back, and puts others in their place. */
async function disturb(anvil: Anvil, random: () => number, depthMax: number): Promise<void> {
  const depth = 1 + Math.floor(random() * depthMax);
  if (depth < (await anvil.head())) await anvil.reorg(depth);
  await grow(anvil, random, 1 + Math.floor(random() * 3));
}

const FAULTS: readonly Fault[] = [
  'rate_limit',
  'unavailable',
  'hang',
  'malformed',
  'range',
  'empty_logs',
  'missing_log',
  'duplicate_log',
  'shuffled_logs',
  'other_parent',
  'stale',
  'no_batches',
];

/** A storm of blocks, reorganisations and faults of two endpoints; in the end the tables equal a read of the final chain. */
export async function runStorm(seed: number): Promise<void> {
  const random = seeded(seed);
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  await using first = await FaultProxy.start(anvil.url);
  await using second = await FaultProxy.start(anvil.url);
  second.rangeBlocks = 7;
  let stormy = true;
  for (const proxy of [first, second])
    proxy.choose = () =>
      stormy && random() < 0.2 ? FAULTS[Math.floor(random() * FAULTS.length)] : undefined;
  await anvil.setCode(TOKEN);
  await anvil.setCode(OTHER);
  await grow(anvil, random, 60);
  const settings = indexerSettings([first.url, second.url], {
    contracts: CONTRACTS,
    // Some requests hang.
    timeout_ms: 500,
  });
  await using _indexer = await startIndexer({ pool: database.pool, settings, log });
  for (let round = 0; round < 15; round++) {
    await disturb(anvil, random, 14);
    if (random() < 0.3) await grow(anvil, random, 8);
    const seen = first.requests + second.requests;
    await until(
      'it looks',
      () => first.requests + second.requests - seen,
      (more) => more > 3,
    );
  }
  stormy = false;
  await anvil.mine();
  await untilIndexed(database.pool, anvil);
  assert.ok((await compareWithChain(database.pool, anvil)) > 20);
  const played = Object.keys({ ...first.played, ...second.played }).length;
  assert.ok(played > 5, JSON.stringify([first.played, second.played]));
}

/** Reorganisations of these depths, one after another: after each the tables equal a read of the chain, and cursors tell of it. */
export async function reorganise(depths: readonly number[]): Promise<void> {
  const random = seeded(64);
  await using anvil = await Anvil.start(['--slots-in-an-epoch', '50']);
  await using database = await createIndexerDatabase();
  await anvil.setCode(TOKEN);
  await anvil.setCode(OTHER);
  await grow(anvil, random, 140);
  const settings = indexerSettings([anvil.url], { contracts: CONTRACTS, finality_depth: 100 });
  await using _indexer = await startIndexer({ pool: database.pool, settings, log });
  await untilIndexed(database.pool, anvil);
  const page = async (bounds: { toBlock?: number }, cursor?: string) => {
    const filter = { contract: TOKEN, ...bounds };
    const list = await listEvents(
      database.pool,
      NETWORK,
      filter,
      { limit: 2, offset: 0 },
      { cursor: cursor === undefined ? undefined : parseCursor(cursor) },
    );
    return list!.cursor!;
  };
  for (const depth of depths) {
    // Empty blocks that are made again are the same blocks.
    for (let block = 0; block < depth; block++) {
      await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(ALICE), word(block)], word(depth));
      await anvil.mine();
    }
    await untilIndexed(database.pool, anvil);
    const stands = { toBlock: (await anvil.head()) - depth };
    const [shown, standing] = [await page({}), await page(stands)];
    await anvil.reorg(depth);
    await grow(anvil, random, 2);
    await untilIndexed(database.pool, anvil);
    await compareWithChain(database.pool, anvil);
    // Whoever was in the middle of pages is told, unless everything that was shown still stands.
    await assert.rejects(page({}, shown), { code: 'CURSOR_REORGED' });
    await page(stands, standing);
  }
  const { rows } = await database.pool.query('select depth from indexer_undos order by seq');
  assert.deepEqual(
    rows.map(({ depth }) => depth),
    depths,
  );
}
