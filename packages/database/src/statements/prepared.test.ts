import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import { openPool } from '../connect.ts';
import { asDatabaseError } from '../failure.ts';
import { createTestDatabase, type TestDatabase } from '../testing/database.ts';
import { startTestPooler } from '../testing/pooler.ts';
import { startTcpTestServer } from '../testing/tcp-server.ts';
import { Prepared, prepared, textsOf } from './prepared.ts';

const log = createLogger('test', 'silent');
/** PostgreSQL makes a plan for any parameters after five for those that were given. */
const OWN_PLANS = 5;

type Islands = TestDatabase<{ islands: { name: string } }>['kysely'];

async function findIslands(db: Islands, names: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`${prepared(names)}
    select name from islands where name = any(${textsOf(names)}) order by name`.execute(db);
  return rows.map(({ name }) => name);
}

describe('statements that come again and again', () => {
  let database: TestDatabase<{ islands: { name: string } }>;
  before(async () => {
    database = await createTestDatabase({ log });
    await database.pool.query('create table islands (name text primary key)');
    await database.pool.query("insert into islands select 'island ' || n from generate_series(1, 100) n");
  });
  after(() => database[Symbol.asyncDispose]());
  const listOf = (count: number) => Array.from({ length: count }, (_, at) => `island ${at + 1}`);

  test('are planned once for a list of any length up to 64, longer lists each time', async () => {
    await database.kysely.connection().execute(async (db) => {
      for (const count of [0, 1, 2, 3, 4, 33, 64, 65])
        for (let time = 0; time < OWN_PLANS + 2; time++)
          assert.deepEqual(await findIslands(db, listOf(count)), listOf(count).toSorted(), String(count));
      const { rows } = await sql<{ lengths: string; own: number; kept: number }>`
        select parameter_types::text as lengths, custom_plans::int as own, generic_plans::int as kept
        from pg_prepared_statements where statement like '%islands%' order by cardinality(parameter_types)`.execute(
        db,
      );
      const found = rows.map(({ lengths, own, kept }) => [lengths.split('text').length - 1, own, kept]);
      // Lists of 3 and 4 have one, those of 33 and 64, too; without parameters there is one plan from the start.
      const kept = (times: number) => [OWN_PLANS, times - OWN_PLANS];
      const once = OWN_PLANS + 2;
      assert.deepEqual(found, [
        [0, 0, once],
        [1, ...kept(once)],
        [2, ...kept(once)],
        [4, ...kept(2 * once)],
        [64, ...kept(2 * once)],
      ]);
    });
  });

  test('are answered also where they are asked with a callback, as a pool asks', async () => {
    const text = '/* prepared */ select name from islands where name = $1';
    assert.deepEqual((await database.pool.query(text, ['island 7'])).rows, [{ name: 'island 7' }]);
    await assert.rejects(database.pool.query(`${text} and nonsense`, ['island 7']), { code: '42703' });
  });

  test('whose columns have changed since: fail as when the database is away, and once', async () => {
    await using other = await openPool<{ islands: { name: string } }>(
      { connectionString: database.url },
      { log, connectionsMax: 1 },
    );
    const ask = () =>
      sql`${prepared()} select * from islands where name = ${'island 1'}`.execute(other.kysely);
    for (let time = 0; time < OWN_PLANS + 1; time++) await ask();
    await database.pool.query('alter table islands add column area int');
    await assert.rejects(ask(), (error) => asDatabaseError(error)?.code === 'DATABASE_UNAVAILABLE');
    assert.deepEqual((await ask()).rows, [{ name: 'island 1', area: null }]);
  });
});

test('behind a pooler, where the next statement may meet another session, nothing is prepared', async () => {
  await using server = await startTcpTestServer(log);
  await using pooler = await startTestPooler(server.url, {
    default_pool_size: '4',
    ignore_startup_parameters: 'statement_timeout,lock_timeout,idle_in_transaction_session_timeout',
  });
  await using database = await openPool<{ islands: { name: string } }>(
    { connectionString: pooler.url },
    { log },
  );
  await database.pool.query('create table islands (name text primary key)');
  // More than the pooler has sessions.
  const asked = Array.from({ length: 80 }, () => findIslands(database.kysely, ['Iona', 'Mull', 'Ulva']));
  for (const names of await Promise.all(asked)) assert.deepEqual(names, []);
  await using direct = await openPool<{ islands: { name: string } }>(
    { connectionString: server.url },
    { log },
  );
  await findIslands(direct.kysely, ['Iona']);
  const { rows } = await direct.pool.query('select count(*)::int as count from pg_prepared_statements');
  assert.deepEqual(rows, [{ count: 1 }], 'a session of its own has it');
});

test('plans are made anew every five seconds, since a table may have grown', async () => {
  let nowMs = 0;
  const statements = new Prepared(() => nowMs);
  await statements.begin({
    processID: 7,
    query: async () => ({ rows: [{ pid: 7 }] }),
  } as unknown as Parameters<Prepared['begin']>[0]);
  const old = [0, 4_999, 5_000, 5_001, 9_999, 10_000].map((at) => {
    nowMs = at;
    return statements.areOld();
  });
  assert.deepEqual(old, [false, false, true, false, false, true]);
});
