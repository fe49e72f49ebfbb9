import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { openPool } from './connect.ts';
import { migrate } from './migrate.ts';
import { createTestDatabase } from './testing/database.ts';
import { findTestServer, type TestServer } from './testing/server.ts';
import { startTcpTestServer } from './testing/tcp-server.ts';

const log = createLogger('test', 'silent');

const FIRST = "create table island (name text primary key);\ninsert into island values ('Iona');\n";
const SECOND = 'alter table island add column height_m integer not null default 0;';

async function directoryOf(files: Record<string, string>): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'skerry-migrations-'));
  for (const [name, sql] of Object.entries(files)) await writeFile(join(path, name), sql);
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

/** The same cases on the embedded server and on one that is reached by URL. */
function suite(name: string, findServer: () => Promise<string>): void {
  describe(`migrations on ${name}`, () => {
    const open = async () => createTestDatabase({ log, serverUrl: await findServer() });

    test('run in order, once; running again does nothing; a new one is added', async () => {
      await using directory = await directoryOf({ '001-islands.sql': FIRST });
      await using database = await open();
      const run = { pool: database.pool, directory: directory.path, log };
      assert.deepEqual(await migrate(run), { applied: ['001-islands.sql'], version: 1 });
      assert.deepEqual(await migrate(run), { applied: [], version: 1 });
      await writeFile(join(directory.path, '002-heights.sql'), SECOND);
      assert.deepEqual(await migrate(run), { applied: ['002-heights.sql'], version: 2 });
      const { rows } = await database.pool.query('select * from island');
      assert.deepEqual(rows, [{ name: 'Iona', height_m: 0 }]);
    });

    test('eight at the same time on separate connections apply each once', async () => {
      await using directory = await directoryOf({ '001-islands.sql': FIRST, '002-heights.sql': SECOND });
      await using database = await open();
      const connection = { connectionString: database.url };
      const others = await Promise.all(
        Array.from({ length: 8 }, () => openPool(connection, { log, connectionsMax: 1 })),
      );
      const runs = others.map(({ pool }) => migrate({ pool, directory: directory.path, log }));
      const results = await Promise.all(runs);
      await Promise.all(others.map((other) => other[Symbol.asyncDispose]()));
      const applied = results.flatMap((result) => result.applied).sort();
      assert.deepEqual(applied, ['001-islands.sql', '002-heights.sql']);
    });

    test('an edited one is refused and changes nothing', async () => {
      await using directory = await directoryOf({ '001-islands.sql': FIRST });
      await using database = await open();
      const run = { pool: database.pool, directory: directory.path, log };
      await migrate(run);
      await writeFile(join(directory.path, '001-islands.sql'), `${FIRST}-- edited`);
      await writeFile(join(directory.path, '002-heights.sql'), SECOND);
      await assert.rejects(migrate(run), {
        code: 'DATABASE_INCOMPATIBLE',
        message: /001-islands\.sql has changed/,
      });
      const { rowCount } = await database.pool.query('select from schema_migrations');
      assert.equal(rowCount, 1);
    });

    test('a database newer than the code is refused', async () => {
      await using newer = await directoryOf({ '001-islands.sql': FIRST, '002-heights.sql': SECOND });
      await using older = await directoryOf({ '001-islands.sql': FIRST });
      await using database = await open();
      await migrate({ pool: database.pool, directory: newer.path, log });
      const again = migrate({ pool: database.pool, directory: older.path, log });
      await assert.rejects(again, {
        code: 'DATABASE_INCOMPATIBLE',
        message: /002-heights\.sql.*newer release/,
      });
    });

    test('a failing one leaves nothing of itself and all before it, and says which line', async () => {
      const broken = 'create table half (id integer);\nselect 1;\nselect nonsense;\n';
      await using directory = await directoryOf({ '001-islands.sql': FIRST, '002-broken.sql': broken });
      await using database = await open();
      const run = migrate({ pool: database.pool, directory: directory.path, log });
      await assert.rejects(run, {
        code: 'MIGRATION_FAILED',
        message: /002-broken\.sql failed: .*nonsense.*\(line 3\)/,
      });
      const { rows } = await database.pool.query(
        `select to_regclass('island') is not null as first, to_regclass('half') is not null as second`,
      );
      assert.deepEqual(rows, [{ first: true, second: false }]);
    });

    test('one that takes long is named in the log while it runs', async () => {
      await using directory = await directoryOf({ '001-long.sql': 'select pg_advisory_xact_lock(1)' });
      await using database = await open();
      const holder = await database.pool.connect();
      await holder.query('begin; select pg_advisory_xact_lock(1)');
      const said = Promise.withResolvers<{ msg: string; migration: string }>();
      const telling = createLogger('test', 'info', { write: (line) => said.resolve(JSON.parse(line)) });
      const run = migrate({ pool: database.pool, directory: directory.path, log: telling, stillMs: 1 });
      const { msg, migration } = await said.promise;
      await holder.query('commit');
      holder.release();
      assert.deepEqual((await run).applied, ['001-long.sql']);
      assert.deepEqual([msg, migration], ['still migrating the database', '001-long.sql']);
    });

    test('one that ends its own transaction is refused', async () => {
      await using directory = await directoryOf({ '001-islands.sql': `${FIRST}commit;` });
      await using database = await open();
      const run = migrate({ pool: database.pool, directory: directory.path, log });
      await assert.rejects(run, { code: 'MIGRATION_FAILED', message: /COMMIT/ });
    });
  });
}

suite('the embedded server', () => findTestServer(log));

describe('with a server', () => {
  let server: TestServer;
  before(async () => {
    server = await startTcpTestServer(log);
  });
  after(() => server[Symbol.asyncDispose]());
  suite('a server by URL', async () => server.url);
});
