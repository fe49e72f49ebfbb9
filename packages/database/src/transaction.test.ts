import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import type pg from 'pg';
import { createTestDatabase, type TestDatabase } from './testing/database.ts';
import { inTransaction } from './transaction.ts';

describe('one transaction', () => {
  let database: TestDatabase<unknown>;
  let pool: pg.Pool;
  before(async () => {
    // One connection: whoever is given another one than before knows that it was closed.
    database = await createTestDatabase({ connectionsMax: 1, log: createLogger('test', 'silent') });
    pool = database.pool;
    await pool.query('create table island (name text primary key)');
  });
  after(() => database[Symbol.asyncDispose]());

  const session = async (on: Pick<pg.Pool, 'query'> = pool) =>
    (await on.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]!.pid;
  const insert = (client: pg.PoolClient, name: string) =>
    client.query('insert into island values ($1)', [name]);

  test('one that failed leaves nothing behind, and its connection to the next', async () => {
    const first = await session();
    const failures: [RegExp, (client: pg.PoolClient) => Promise<unknown>][] = [
      [/no such island/, () => Promise.reject(new Error('no such island'))],
      [/duplicate key/, (client) => insert(client, 'Iona')],
      [/statement timeout/, (client) => client.query('set local statement_timeout = 1; select pg_sleep(60)')],
    ];
    for (const [message, fail] of failures) {
      const failing = inTransaction(pool, async (client) => {
        await insert(client, 'Iona');
        await client.query(`set application_name = 'failed'`);
        await fail(client);
      });
      await assert.rejects(failing, { message });
      const { rows } = await pool.query(
        `select current_setting('application_name') as name, (select count(*) from island) as islands, pg_current_xact_id_if_assigned() as xact`,
      );
      assert.deepEqual(rows, [{ name: 'skerry-core', islands: 0, xact: null }]);
      assert.equal(await session(), first);
    }
    await inTransaction(pool, (client) => insert(client, 'Iona'));
    assert.deepEqual((await pool.query('table island')).rows, [{ name: 'Iona' }]);
  });

  test('a connection that takes no rollback is closed', async () => {
    const first = await session();
    const lost = inTransaction(pool, (client) =>
      client.query('select pg_terminate_backend(pg_backend_pid())'),
    );
    await assert.rejects(lost);
    assert.notEqual(await session(), first);
  });
});
