import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { withClient } from '../reach.ts';
import { SOCKET_PATH_BYTES_MAX } from './layout.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import {
  databaseDirectory,
  killServer,
  listServerProcesses,
  QUICK,
  query,
  readPolicy,
  SCHED_BATCH,
  temporaryDirectory,
} from './testing/processes.ts';

const log = createLogger('test', 'silent');

describe('embedded PostgreSQL', () => {
  test('starts on an empty directory, keeps what was written, starts again, leaves no process', async () => {
    await using directory = await temporaryDirectory();
    const cluster = join(directory.path, 'cluster');
    {
      await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
      await query(server.connection, `create table island as select 'Iona' as name`);
    }
    assert.deepEqual(listServerProcesses(cluster), []);
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    assert.deepEqual(await query(server.connection, 'select name from island'), [{ name: 'Iona' }]);
    assert.equal((await stat(directory.path)).mode & 0o777, 0o700);
  });

  test('is durable, private and reached by its socket alone', async () => {
    await using directory = await temporaryDirectory();
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log });
    const names = [
      'fsync',
      'synchronous_commit',
      'full_page_writes',
      'data_checksums',
      'server_encoding',
      'listen_addresses',
    ];
    const columns = names.map((name) => `current_setting('${name}') as ${name}`).join(', ');
    const [settings] = await query(server.connection, `select ${columns}`);
    assert.deepEqual(settings, {
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      data_checksums: 'on',
      server_encoding: 'UTF8',
      listen_addresses: '',
    });
    assert.equal((await stat(server.connection.host)).mode & 0o777, 0o700);
  });

  test('takes no processor from whoever asks it', async () => {
    await using directory = await temporaryDirectory();
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    const policies = await withClient(server.connection, async (client) => {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      return [server.pid, rows[0]!.pid].map(readPolicy);
    });
    assert.deepEqual(policies, [SCHED_BATCH, SCHED_BATCH]);
  });

  for (const name of ['with spaces', `"quotes" and 'others', comma: colon`, 'ünïcode', 'l'.repeat(120)]) {
    test(`a data directory named ${name.slice(0, 30)}`, async () => {
      await using directory = await databaseDirectory(name);
      await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
      assert.deepEqual(await query(server.connection, 'select 1 as one'), [{ one: 1 }]);
      const socket = join(server.connection.host, `.s.PGSQL.${server.connection.port}`);
      assert.ok(Buffer.byteLength(socket) <= SOCKET_PATH_BYTES_MAX);
    });
  }

  test('starts by itself after a kill -9 of all its processes, with every acknowledged row', async () => {
    await using directory = await databaseDirectory();
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    await query(server.connection, 'create table row (n integer)');
    const writer = writeRows((n) => query(server.connection, `insert into row values (${n})`));
    await until('a hundred rows are acknowledged', () => writer.acknowledged >= 100);
    const before = server.pid;
    killServer(join(directory.path, 'cluster'));
    await writer.ended;
    await until('another server answers', async () => server.pid !== before);
    const [found] = await query(server.connection, 'select count(*)::int as rows, max(n) as last from row');
    // One more than acknowledged may be there: its answer was on the way.
    assert.ok(
      [0, 1].includes((found?.rows as number) - writer.acknowledged),
      `${found?.rows} of ${writer.acknowledged}`,
    );
    assert.equal(found?.last, (found?.rows as number) - 1);
  });

  test('disposal while the server is down ends the attempts', async () => {
    await using directory = await databaseDirectory();
    const cluster = join(directory.path, 'cluster');
    const lines: string[] = [];
    const told = createLogger('test', 'error', { write: (line) => void lines.push(line) });
    const server = await startEmbeddedPostgres({ dataDir: directory.path, log: told, settings: QUICK });
    killServer(cluster);
    await until(
      'it is down',
      () => lines,
      (all) => all.some((line) => line.includes('the embedded database exited')),
    );
    await server[Symbol.asyncDispose]();
    assert.deepEqual(listServerProcesses(cluster), []);
    await using again = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    assert.deepEqual(await query(again.connection, 'select 1 as one'), [{ one: 1 }]);
  });

  test('a server that does not start again, as its directory is gone, is told in its own words, and starts when it is back', async () => {
    await using directory = await databaseDirectory();
    const cluster = join(directory.path, 'cluster');
    const away = join(directory.path, 'away');
    const lines: { msg: string; err?: { code?: string; message: string } }[] = [];
    const told = createLogger('test', 'error', { write: (line) => void lines.push(JSON.parse(line)) });
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log: told, settings: QUICK });
    const before = server.pid;
    await rename(cluster, away);
    process.kill(before, 'SIGKILL');
    const failed = await until('it was tried again', () => lines.find(({ err }) => err !== undefined));
    assert.equal(failed.err?.code, 'DATABASE_UNAVAILABLE', JSON.stringify(failed));
    assert.match(failed.err.message, /could not access directory/);
    await rename(away, cluster);
    await until('it runs again', () => server.pid !== before);
  });

  test('an abort during the start ends it and frees the directory', async () => {
    await using directory = await abortFirstStart();
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    assert.deepEqual(await query(server.connection, 'select 1 as one'), [{ one: 1 }]);
    assert.ok(!readdirSync(directory.path).some((name) => name.startsWith('new-')));
  });

  test('a stale postmaster.pid with the pid of a stranger is no obstacle and no harm to the stranger', async (t) => {
    await using directory = await databaseDirectory();
    const stranger = spawn('sleep', ['600']);
    t.after(() => stranger.kill('SIGKILL'));
    const file = join(directory.path, 'cluster', 'postmaster.pid');
    await writeFile(file, `${stranger.pid}\n${join(directory.path, 'cluster')}\n1795260855\n5432\n\n\n`);
    {
      await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
      assert.notEqual(server.pid, stranger.pid);
    }
    assert.equal(stranger.exitCode ?? stranger.signalCode, null);
  });

  test('a cluster of another major version is refused with its number', async () => {
    await using directory = await databaseDirectory();
    await writeFile(join(directory.path, 'cluster', 'PG_VERSION'), '17\n');
    const again = startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    await assert.rejects(again, { code: 'DATABASE_INCOMPATIBLE', message: /PostgreSQL 17/ });
  });
});

/** Writes 0, 1, 2… one after another until the first failure, and counts what was acknowledged. */
function writeRows(write: (n: number) => Promise<unknown>): { acknowledged: number; ended: Promise<void> } {
  const state = { acknowledged: 0, ended: Promise.resolve() };
  state.ended = (async () => {
    try {
      for (;;) {
        await write(state.acknowledged);
        state.acknowledged += 1;
      }
    } catch {
      // The failure is what the test brings about.
    }
  })();
  return state;
}

/** The directory of a first start that was ended before there was a cluster. */
async function abortFirstStart(): Promise<{ path: string } & AsyncDisposable> {
  for (;;) {
    const directory = await temporaryDirectory();
    const cluster = join(directory.path, 'cluster');
    const controller = new AbortController();
    const options = { dataDir: directory.path, log, settings: QUICK, signal: controller.signal };
    const outcome = startEmbeddedPostgres(options).catch((error: Error) => error.name);
    await until('initdb works', () =>
      readdirSync(directory.path).some((name) => name.startsWith('new-') || name === 'cluster'),
    );
    const isMade = existsSync(cluster);
    controller.abort();
    const ended = await outcome;
    if (ended === 'AbortError') return directory;
    // On a busy machine it was there before anybody looked.
    assert.ok(isMade && typeof ended === 'object', String(ended));
    await ended[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  }
}
