import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { startIndexer } from './indexer.ts';
import { findFreshness } from './read/status.ts';
import { Anvil } from './testing/anvil.ts';
import {
  createIndexerDatabase,
  indexerSettings,
  NETWORK,
  TOKEN,
  TRANSFER_TOPIC,
  word,
} from './testing/setup.ts';

/** More than are asked while forty blocks are read, by far. */
const LOOKS_MAX = 5_000;

test('a network that is new is read without waiting: no timer has to end', async (t) => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  const { pool } = database;
  await anvil.setCode(TOKEN);
  for (let value = 0; value < 40; value++) {
    await anvil.emit(TOKEN, [TRANSFER_TOPIC, word(1), word(2)], word(value));
    await anvil.mine();
  }
  t.mock.timers.enable({ apis: ['setTimeout'] });
  // For those who have imported it.
  syncBuiltinESMExports();
  const settings = indexerSettings([anvil.url]);
  const indexer = await startIndexer({ pool, settings, log: createLogger('test', 'silent') });
  let lag: number | null | undefined;
  for (let looks = 0; looks < LOOKS_MAX && lag !== 0; looks++)
    lag = (await findFreshness(pool, NETWORK))?.lag;
  t.mock.timers.reset();
  syncBuiltinESMExports();
  await indexer[Symbol.asyncDispose]();
  assert.equal(lag, 0);
});
