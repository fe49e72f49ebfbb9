import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { openPool } from './connect.ts';
import { readConnectionRoom } from './shares/room.ts';
import { startTestPooler } from './testing/pooler.ts';
import { startTcpTestServer } from './testing/tcp-server.ts';
import { createWrite } from './write.ts';

const LIMITS = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];

test('PgBouncer in transaction mode does for the pool, whether it refuses time limits or drops them', async () => {
  await using server = await startTcpTestServer(createLogger('test', 'silent'));
  for (const ignored of ['', LIMITS.join()]) {
    await using pooler = await startTestPooler(server.url, { ignore_startup_parameters: ignored });
    const said: { missing?: string[] }[] = [];
    await using database = await openPool<{ written: { n: number } }>(
      { connectionString: pooler.url },
      { log: createLogger('test', 'warn', { write: (line) => void said.push(JSON.parse(line)) }) },
    );
    const expected = ignored === '' ? LIMITS : LIMITS.slice(1);
    assert.deepEqual(
      said.map(({ missing }) => missing),
      [expected],
    );
    const { pool, kysely } = database;
    assert.equal(await readConnectionRoom(pool), undefined, 'whoever is too many waits at the pooler');
    await pool.query('create table if not exists written (n int)');
    const write = createWrite<{ written: { n: number } }>(pool);
    // More than the pooler has connections to the server, each of several statements.
    await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        write(async (writer) => {
          writer.copy('written', ['n'], [[n]]);
          await writer.trx
            .updateTable('written')
            .set({ n: n + 100 })
            .where('n', '=', n)
            .execute();
        }),
      ),
    );
    const found = await kysely.selectFrom('written').selectAll().orderBy('n').execute();
    assert.deepEqual(
      found.map(({ n }) => n),
      Array.from({ length: 40 }, (_, n) => n + 100),
    );
    await pool.query('drop table written');
    // As the documentation says; it is in force for connections that begin after it.
    await pool.query("alter role operator set statement_timeout = '60s'");
  }
});
