import { test } from 'node:test';
import { Anvil } from './testing/anvil.ts';
import { MASS_EMITTER_CODE } from './testing/contracts.ts';
import { growMass, kill, killAgainAndAgain, startChild } from './testing/kills.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  networkSettings,
  TOKEN,
  untilIndexed,
} from './testing/setup.ts';

/** `npm run soak -- indexer/crash` does it at more. */
const KILLS = 4;

test(`kill -9 at ${KILLS} moments of a backfill and of reorganisations: the tables equal a read of the chain`, () =>
  killAgainAndAgain(KILLS));

test('two processes that index the same network do no harm', async () => {
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  await anvil.setCode(TOKEN, MASS_EMITTER_CODE);
  await growMass(anvil, 120, 0);
  const network = networkSettings([anvil.url], { range_blocks_max: 4 });
  const children = await Promise.all([1, 2].map(() => startChild(database.url, network)));
  try {
    for (let round = 0; round < 5; round++) {
      await anvil.reorg(3);
      await growMass(anvil, 5, round);
    }
    await untilIndexed(database.pool, anvil);
    await compareWithChain(database.pool, anvil);
  } finally {
    for (const child of children) await kill(child);
  }
});
