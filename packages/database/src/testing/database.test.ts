import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { bareEnvironment } from '@skerry/kit/testing/environment';
import { until } from '@skerry/kit/testing/until';
import { listServerProcesses } from '../embedded/testing/processes.ts';
import { createTestDatabase, databaseUrlOf } from './database.ts';
import { removeAbandoned, startTestServer, type TestServer } from './server.ts';

const log = createLogger('test', 'silent');

describe('databases of tests', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer(log);
  });
  after(() => server[Symbol.asyncDispose]());

  test('are separate clones with the migrations, dropped on disposal', async () => {
    const migrations = await mkdtemp(join(tmpdir(), 'skerry-migrations-'));
    await writeFile(join(migrations, '001-islands.sql'), 'create table island (name text);');
    const options = { log, migrations, serverUrl: server.url };
    const names: string[] = [];
    {
      const opened = await Promise.all([1, 2, 3].map(() => createTestDatabase(options)));
      for (const database of opened) {
        names.push(database.name);
        await database.pool.query('insert into island values ($1)', [database.name]);
        const { rows } = await database.pool.query('select name from island');
        assert.deepEqual(rows, [{ name: database.name }]);
      }
      await Promise.all(opened.map((database) => database[Symbol.asyncDispose]()));
    }
    await using other = await createTestDatabase({ log, serverUrl: server.url });
    const { rows } = await other.pool.query('select datname from pg_database where datname = any($1)', [
      names,
    ]);
    assert.deepEqual(rows, []);
    await rm(migrations, { recursive: true });
  });

  test('a URL with a socket directory keeps it when the database changes', () => {
    const url = databaseUrlOf('postgresql://skerry@%2Ftmp%2Fa%20b:5432/postgres', 'x');
    assert.equal(url, 'postgresql://skerry@%2Ftmp%2Fa%20b:5432/x');
  });
});

describe('a test process that ends leaves no server', () => {
  for (const way of ['return', 'exit', 'hang']) {
    test(way === 'hang' ? 'by kill -9' : `by ${way}`, async (t) => {
      const script = join(import.meta.dirname, 'leak-child.ts');
      const stdio: ['pipe', 'pipe', 'inherit'] = ['pipe', 'pipe', 'inherit'];
      const child = spawn(process.execPath, [script, way], {
        stdio,
        env: { ...bareEnvironment(), TMPDIR: tmpdir() },
      });
      t.after(() => child.kill('SIGKILL'));
      const exited = once(child, 'exit');
      const [line] = await once(createInterface({ input: child.stdout }), 'line');
      const dataDir = dirname(decodeURIComponent(new URL(JSON.parse(line as string).url).hostname));
      if (way === 'hang') {
        assert.notDeepEqual(listServerProcesses(join(dataDir, 'cluster')), []);
        child.kill('SIGKILL');
      }
      await exited;
      await until(
        'no process is left',
        () => listServerProcesses(join(dataDir, 'cluster')),
        ({ length }) => length === 0,
      );
      // The next test process removes the directory of one that was killed.
      if (way === 'hang')
        await until('the next one removes it', async () => {
          await removeAbandoned();
          return !existsSync(dataDir);
        });
      assert.ok(!existsSync(dataDir), dataDir);
    });
  }
});
