import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { lockDataDir } from '../embedded/lock.ts';
import { startEmbeddedPostgres } from '../embedded/postgres.ts';
import { databaseDirectory, QUICK, query, temporaryDirectory } from '../embedded/testing/processes.ts';
import { withClient } from '../reach.ts';
import { clusterDirectoryOf } from '../testing/standby.ts';
import { readCluster } from './base-backup.ts';
import { openCluster } from './running.ts';

const log = createLogger('test', 'silent');

/** Writes a copy of a cluster; gives what `count` said when its end was fixed. */
async function copyTo(dataDir: string, target: string, count: () => Promise<number>): Promise<number> {
  await using cluster = await openCluster({ dataDir, log });
  let counted = 0;
  const files = readCluster(cluster, async () => {
    counted = await count();
  });
  for await (const file of files) {
    const path = join(target, file.path);
    await mkdir(file.kind === 'directory' ? path : dirname(path), { recursive: true, mode: 0o700 });
    if (file.kind === 'directory') continue;
    const bytes = await buffer(file.content());
    assert.equal(bytes.length, file.sizeBytes, file.path);
    await writeFile(path, bytes, { mode: 0o600 });
  }
  return counted;
}

const COUNT = 'select count(*)::int as count from island';
const countOf = async (connection: Parameters<typeof query>[0]) =>
  ((await query(connection, COUNT)) as unknown as { count: number }[])[0]!.count;

describe('a copy of a cluster', () => {
  test('that is written to meanwhile has all that was committed before its end', async () => {
    await using directory = await databaseDirectory();
    await using copy = await temporaryDirectory();
    const target = await clusterDirectoryOf(copy.path);
    // The log of one checkpoint is given back while the copy runs, unless something keeps it.
    const settings = { ...QUICK, max_wal_size: '32MB', min_wal_size: '32MB' };
    let atEnd: number;
    {
      await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings });
      await query(server.connection, `create table island as select repeat('x', 200) as name`);
      let isOver = false;
      const writing = withClient(server.connection, async (client) => {
        while (!isOver)
          await client.query(`insert into island select repeat('x', 200) from generate_series(1, 100)`);
      });
      atEnd = await copyTo(directory.path, target, async () => {
        for (let turn = 0; turn < 3; turn++) {
          await query(
            server.connection,
            `insert into island select repeat('x', 200) from generate_series(1, 1000)`,
          );
          await query(server.connection, 'select pg_switch_wal()');
          await query(server.connection, 'checkpoint');
        }
        return countOf(server.connection);
      });
      isOver = true;
      await writing;
      assert.deepEqual(await query(server.connection, 'select from pg_replication_slots'), []);
    }
    await using restored = await startEmbeddedPostgres({ dataDir: copy.path, log, settings: QUICK });
    assert.ok(atEnd > 3_000, `${atEnd}`);
    assert.ok((await countOf(restored.connection)) >= atEnd);
  });

  test('is not made where a process has the cluster and nothing answers, which is said', async () => {
    await using directory = await databaseDirectory();
    const lock = await lockDataDir(join(directory.path, 'lock'), { waitMs: 0 });
    assert.ok(lock);
    using _ = lock;
    await assert.rejects(openCluster({ dataDir: directory.path, log }), {
      code: 'DATABASE_UNAVAILABLE',
      message: /^The database in .* does not answer, .* try again when it answers\.$/,
    });
  });

  test('is made of one that nothing serves, too', async () => {
    await using directory = await databaseDirectory();
    await using copy = await temporaryDirectory();
    assert.equal(await copyTo(directory.path, await clusterDirectoryOf(copy.path), async () => 7), 7);
    await using restored = await startEmbeddedPostgres({ dataDir: copy.path, log, settings: QUICK });
    assert.deepEqual(await query(restored.connection, 'select 1 as one'), [{ one: 1 }]);
  });
});
