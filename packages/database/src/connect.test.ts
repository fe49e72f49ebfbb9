import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import type pg from 'pg';
import { OwnConnection, openDatabase } from './connect.ts';
import { killServer, temporaryDirectory } from './embedded/testing/processes.ts';
import { connectWithPatience, isPassing } from './reach.ts';
import { createTestDatabase } from './testing/database.ts';
import type { TestServer } from './testing/server.ts';
import { startTcpTestServer } from './testing/tcp-server.ts';

const log = createLogger('test', 'silent');

interface Schema {
  island: { name: string };
}

describe('the embedded database', () => {
  test('is opened, keeps data, is opened again', async () => {
    await using directory = await temporaryDirectory();
    {
      await using database = await openDatabase<Schema>({ dataDir: directory.path, log });
      await sql`create table island (name text)`.execute(database.kysely);
      await database.kysely.insertInto('island').values({ name: 'Iona' }).execute();
    }
    await using database = await openDatabase<Schema>({ dataDir: directory.path, log });
    assert.deepEqual(await database.kysely.selectFrom('island').selectAll().execute(), [{ name: 'Iona' }]);
  });

  test('a killed server fails the queries of that moment and no more', async () => {
    await using directory = await temporaryDirectory();
    await using database = await openDatabase<Schema>({ dataDir: directory.path, log });
    const inUse = await database.pool.connect();
    try {
      await inUse.query('begin');
      const failed = assert.rejects(inUse.query('select pg_sleep(60)'));
      killServer(join(directory.path, 'cluster'));
      await failed;
    } finally {
      inUse.release(true);
    }
    await untilAnswered(database.pool);
  });
});

describe('a server by DATABASE_URL', () => {
  let server: TestServer;
  before(async () => {
    server = await startTcpTestServer(log);
  });
  after(() => server[Symbol.asyncDispose]());
  const open = (databaseUrl: string) => openDatabase<Schema>({ databaseUrl, dataDir: '/nonexistent', log });

  test('is used as it is, and nothing is written to the data directory', async () => {
    await using database = await open(server.url);
    const { rows } = await database.pool.query('select 1 as one');
    assert.deepEqual(rows, [{ one: 1 }]);
  });

  test('a connection that the server ends, idle or in a transaction, does not end the process', async () => {
    await using database = await open(server.url);
    const idle = await database.pool.connect();
    const busy = await database.pool.connect();
    idle.release();
    try {
      await busy.query('begin');
      await using administrator = await open(server.url);
      await administrator.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'skerry-core' and pid <> pg_backend_pid()`,
      );
      await assert.rejects(busy.query('select 1'));
    } finally {
      busy.release(true);
    }
    await untilAnswered(database.pool);
  });

  test('a wrong password or database fails at once; the message holds no password', async () => {
    const wrongPassword = new URL(server.url);
    wrongPassword.password = 'hunter2';
    const noPassword = (error: Error & { code: string }) =>
      error.code === 'DATABASE_UNAVAILABLE' &&
      /authentication/.test(error.message) &&
      !error.message.includes('hunter2');
    await assert.rejects(open(wrongPassword.href), noPassword);
    const wrongDatabase = new URL(server.url);
    wrongDatabase.pathname = '/atlantis';
    await assert.rejects(open(wrongDatabase.href), { code: 'DATABASE_UNAVAILABLE', message: /atlantis/ });
  });

  test('a database that cannot hold all text is refused', async () => {
    await using database = await open(server.url);
    await database.pool.query(`create database latin encoding 'LATIN1' locale 'C' template template0`);
    const latin = new URL(server.url);
    latin.pathname = '/latin';
    await assert.rejects(open(latin.href), { code: 'DATABASE_INCOMPATIBLE', message: /LATIN1/ });
  });

  test('a server that is not there is waited for, then reported', async () => {
    const listener = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    const connection = { connectionString: `postgresql://a:hunter2@127.0.0.1:${port}/x` };
    const warned: unknown[] = [];
    const noting = { ...log, warn: (fields: unknown) => warned.push(fields) } as unknown as typeof log;
    const attempt = connectWithPatience(connection, { log: noting, patienceMs: 300 });
    await assert.rejects(attempt, { code: 'DATABASE_UNAVAILABLE' });
    // Who waits for half a minute is told for what, and not at each try.
    assert.deepEqual(warned, [{ reason: 'Connection terminated unexpectedly' }]);
    await new Promise((resolve) => listener.close(resolve));
    const controller = new AbortController();
    const waiting = connectWithPatience(connection, { log, signal: controller.signal });
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
  });
});

/** A query can still meet a connection that has just been ended; those after it get new ones. */
async function untilAnswered(pool: pg.Pool): Promise<void> {
  const ask = () => pool.query('select 1').catch((error: Error) => error);
  await until('an answer', ask, (answer) => !(answer instanceof Error));
}

test('what can pass by itself is told from what cannot', () => {
  for (const code of ['ECONNREFUSED', 'ENOENT', '57P03', '53300', '08006'])
    assert.ok(isPassing({ code }), code);
  for (const code of ['28P01', '3D000', 'ENOTFOUND', '42601', 'EACCES'])
    assert.ok(!isPassing({ code }), code);
  assert.ok(isPassing(new AggregateError([{ code: 'ECONNREFUSED' }, { code: 'ENETUNREACH' }])));
});

test('a pool of the test server has the limits of production', async () => {
  await using database = await createTestDatabase({ log });
  const { rows } = await database.pool.query(`select current_setting('statement_timeout') as statement,
    current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`);
  assert.deepEqual(rows, [{ statement: '1min', lock: '30s', idle: '1min' }]);
});

test('what is asked over a connection of its own waits for nobody, and a lost one is replaced', async () => {
  await using database = await createTestDatabase({ log });
  const { pool } = database;
  await using own = new OwnConnection(pool);
  const db = own.createDatabase();
  const ask = async () => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db);
    return rows[0]!.pid;
  };
  const first = await ask();
  const taken = await Promise.all(Array.from({ length: pool.options.max - 1 }, () => pool.connect()));
  const waiting = pool.connect();
  try {
    assert.equal(pool.waitingCount, 1);
    assert.equal(await ask(), first);
    await taken[0]!.query('select pg_terminate_backend($1)', [first]);
    await assert.rejects(ask());
  } finally {
    for (const client of taken) client.release();
    (await waiting).release();
  }
  assert.notEqual(await ask(), first);
});
