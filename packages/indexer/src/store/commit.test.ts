import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { createIndexerDatabase, NETWORK, OTHER, TOKEN } from '../testing/setup.ts';
import { commitStretch } from './commit.ts';
import { ensureNetwork } from './networks.ts';
import { createNetworkTables } from './partitions.ts';
import { listScans } from './scans.ts';

test('a stretch of a backfill and whoever has locked the network do not wait for each other', async () => {
  await using database = await createIndexerDatabase();
  const { pool } = database;
  const { id: networkId } = await ensureNetwork(pool, NETWORK, 1);
  await createNetworkTables(pool, networkId);
  for (const address of [TOKEN, OTHER])
    await pool.query(
      `with contract as (insert into indexer_contracts (network_id, address) values ($1, $2) returning id)
       insert into indexer_scans (network_id, contract_id, kind, topics, from_block, next_block)
       select $1, id, 'events', '{}', 0, 0 from contract`,
      [networkId, address],
    );
  const scans = await listScans(pool, networkId);
  const span = { contractId: scans[0]!.contractId, eventId: 1, fromBlock: 0, toBlock: 9, rows: 1 };
  const batch = { chunks: [], rows: 1, spans: [{ ...span, fromTimestamp: 0, toTimestamp: 9 }] };
  // As the step does that brings a scan from the window to the tip.
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query('select from indexer_networks where id = $1 for no key update', [networkId]);
    const pass = { kind: 'events', scans, from: 0, to: 9 } as const;
    const stretch = commitStretch(pool, networkId, pass, { from: 0, to: 9, lastHash: '0x9', batch });
    await until('the backfill waits for the network', async () => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rowCount === 1;
    });
    await client.query('update indexer_scans set prior_hash = prior_hash where network_id = $1', [networkId]);
    await client.query('commit');
    await stretch;
  } finally {
    client.release();
  }
  const after = await listScans(pool, networkId);
  assert.deepEqual(
    after.map(({ nextBlock }) => nextBlock),
    [10, 10],
  );
});
