import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import { until } from '@skerry/kit/testing/until';
import type { NetworkSettings } from '../settings.ts';
import { Anvil } from './anvil.ts';
import { MASS_EMITTER_CODE, massInput } from './contracts.ts';
import {
  compareWithChain,
  createIndexerDatabase,
  networkSettings,
  seeded,
  TOKEN,
  untilIndexed,
} from './setup.ts';

export async function startChild(databaseUrl: string, network: NetworkSettings): Promise<ChildProcess> {
  const script = join(import.meta.dirname, 'child.ts');
  const settings = JSON.stringify({ networks: [network] });
  const child = spawn(process.execPath, [...process.execArgv, script, databaseUrl, settings], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  await awaitOutput(child, 'the indexer', hear(child, ['stderr']));
  return child;
}

export const kill = (child: ChildProcess): Promise<void> => endProcess(child, 'SIGKILL');

export async function growMass(anvil: Anvil, blocks: number, seed: number): Promise<void> {
  for (let block = 0; block < blocks; block++) {
    await anvil.send(TOKEN, massInput(25, seed + block));
    await anvil.mine();
  }
}

/** Kills an indexer at so many moments of a backfill and then of reorganisations; in the end the tables equal a read of the chain. */
export async function killAgainAndAgain(kills: number): Promise<void> {
  const random = seeded(99);
  await using anvil = await Anvil.start();
  await using database = await createIndexerDatabase();
  await anvil.setCode(TOKEN, MASS_EMITTER_CODE);
  await growMass(anvil, 200, 0);
  // Small ranges and partitions: many commits, and a kill between any two of them.
  const network = networkSettings([anvil.url], { range_blocks_max: 4, partition_blocks: 1_000 });
  const { pool } = database;
  const progress = async () =>
    (
      await pool.query<{ at: string }>(
        `select concat(n.tip_hash, ' ', (select sum(next_block) from indexer_scans), n.undo_seq) as at from indexer_networks n`,
      )
    ).rows[0]?.at ?? '';
  for (let round = 0; round < kills; round++) {
    const child = await startChild(database.url, network);
    try {
      const isLate = round >= kills / 2;
      // What the reorganisation replaces has been read: else there would be nothing to undo.
      if (isLate) await untilIndexed(pool, anvil);
      const before = await progress();
      if (isLate) {
        await anvil.reorg(1 + Math.floor(random() * 12));
        await growMass(anvil, 3, round);
      } else await growMass(anvil, 2, round);
      // Killed at a chosen moment after it was seen to move.
      await until('it moves', progress, (now) => now !== before);
      await delay(random() * 40);
    } finally {
      // Also where it failed: a process that goes on would keep the test from ending.
      await kill(child);
    }
  }
  const child = await startChild(database.url, network);
  try {
    await anvil.mine();
    await untilIndexed(pool, anvil);
  } finally {
    await kill(child);
  }
  assert.ok((await compareWithChain(pool, anvil)) > 4_000);
  const undone = await pool.query('select from indexer_undos');
  // A reorganisation of what was killed before it was undone may be undone with the next one.
  const undonesMin = Math.min(4, kills / 2 - 1);
  assert.ok((undone.rowCount ?? 0) >= undonesMin, `${undone.rowCount} undone`);
}
