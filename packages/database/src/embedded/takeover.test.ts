import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { acquireLock, createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { findPackageDir, prepareBinaries } from './binaries.ts';
import { layoutOf } from './layout.ts';
import { startEmbeddedPostgres } from './postgres.ts';
import { type Server, startServer } from './server.ts';
import { decideSettings } from './settings.ts';
import {
  databaseDirectory,
  findTestIdentity,
  killServer,
  listServerProcesses,
  QUICK,
  query,
  startChild,
  temporaryDirectory,
} from './testing/processes.ts';

const log = createLogger('test', 'silent');

describe('one data directory, one server', () => {
  test('kill -9 of the node: its server ends by itself', async () => {
    await using directory = await databaseDirectory();
    using child = startChild(directory.path);
    await child.ready;
    await child.kill();
    const cluster = join(directory.path, 'cluster');
    await until(
      'no process is left',
      () => listServerProcesses(cluster),
      ({ length }) => length === 0,
    );
    assert.ok(!(await readdir(cluster)).includes('postmaster.pid'));
  });

  test('kill -9 of the node and at once a new one: it waits for the old server and has all data', async () => {
    await using directory = await databaseDirectory();
    using child = startChild(directory.path);
    const { connection, pid } = await child.ready;
    await query(connection, `create table island as select 'Iona' as name`);
    await child.kill();
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    assert.notEqual(server.pid, pid);
    assert.deepEqual(await query(server.connection, 'select name from island'), [{ name: 'Iona' }]);
  });

  test('kill -9 of the node and of its server, and at once a new one', async () => {
    await using directory = await databaseDirectory();
    using child = startChild(directory.path);
    const { connection } = await child.ready;
    await query(connection, `create table island as select 'Iona' as name`);
    killServer(join(directory.path, 'cluster'));
    await child.kill();
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    assert.deepEqual(await query(server.connection, 'select name from island'), [{ name: 'Iona' }]);
  });

  test('kill -9 during the first start leaves nothing broken', async () => {
    await using directory = await killDuringFirstStart();
    const list = () => readdir(directory.path);
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    assert.deepEqual(await query(server.connection, 'select 1 as one'), [{ one: 1 }]);
    assert.deepEqual(
      (await list()).filter((name) => name.startsWith('new-')),
      [],
    );
  });

  test('a server that is stuck when its node is killed is waited for', async () => {
    await using directory = await databaseDirectory();
    using child = startChild(directory.path);
    const { pid } = await child.ready;
    process.kill(pid, 'SIGSTOP');
    await child.kill();
    const started = startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    await until('the new one waits for the lock', () => isLockAwaited(join(directory.path, 'lock')));
    process.kill(pid, 'SIGCONT');
    await using server = await started;
    assert.notEqual(server.pid, pid);
    assert.deepEqual(await query(server.connection, 'select 1 as one'), [{ one: 1 }]);
  });

  test('a server that outlived its node unnoticed is ended before a new one starts', async () => {
    await using directory = await databaseDirectory();
    const lockFile = join(directory.path, 'lock');
    const orphan = await startByHand(directory.path, lockFile);
    await writeFile(lockFile, await describeDeadProcess());
    await using server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    assert.match(await orphan.ended, /exit code 0/);
    assert.notEqual(server.pid, orphan.pid);
  });

  test('a second supervisor is refused while the first lives, and the first is unharmed', async () => {
    await using directory = await databaseDirectory();
    await using first = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    const { pid } = first;
    const second = startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    await assert.rejects(second, { code: 'DATABASE_IN_USE' });
    assert.equal(first.pid, pid);
    assert.deepEqual(await query(first.connection, 'select 1 as one'), [{ one: 1 }]);
  });

  test('a second supervisor that comes while the first is ending waits for its turn', async () => {
    await using directory = await databaseDirectory();
    const first = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    const started = startEmbeddedPostgres({
      dataDir: directory.path,
      log,
      settings: QUICK,
      patienceMs: 120_000,
    });
    await until('the second one waits for the lock', () => isLockAwaited(join(directory.path, 'lock')));
    await first[Symbol.asyncDispose]();
    await using second = await started;
    assert.deepEqual(await query(second.connection, 'select 1 as one'), [{ one: 1 }]);
  });

  test('of eight that start at the same time on an empty directory, one wins', async () => {
    await using directory = await temporaryDirectory();
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () =>
        startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK, patienceMs: 0 }),
      ),
    );
    const won = results.filter((result) => result.status === 'fulfilled');
    const lost = results.filter((result) => result.status === 'rejected');
    for (const { value } of won) await value[Symbol.asyncDispose]();
    assert.equal(won.length, 1);
    assert.ok(lost.every(({ reason }) => reason.code === 'DATABASE_IN_USE'));
  });

  test('a server that somebody started by hand is neither joined nor ended', async () => {
    await using directory = await databaseDirectory();
    await using elsewhere = await temporaryDirectory();
    const other = await startByHand(directory.path, join(elsewhere.path, 'lock'));
    const started = startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
    await assert.rejects(started, { code: 'DATABASE_IN_USE', message: new RegExp(String(other.pid)) });
    assert.ok(listServerProcesses(join(directory.path, 'cluster')).includes(other.pid));
    await other.stop();
  });
});

/** A directory whose first start was killed before it had a database. */
async function killDuringFirstStart(): Promise<{ path: string } & AsyncDisposable> {
  for (;;) {
    const directory = await temporaryDirectory();
    using child = startChild(directory.path);
    const list = (): Promise<string[]> => readdir(directory.path).catch(() => []);
    await until('initdb works', list, (names) =>
      names.some((name) => name.startsWith('new-') || name === 'cluster'),
    );
    await child.kill();
    if (!(await list()).includes('cluster')) return directory;
    // It was there before the kill.
    await directory[Symbol.asyncDispose]();
  }
}

/** A server without a supervisor, which alone holds the lock on the file. */
async function startByHand(dataDir: string, lockFile: string): Promise<Server> {
  const layout = layoutOf(dataDir);
  const lock = (await acquireLock(lockFile, { waitMs: 0 }))!;
  const identity = await findTestIdentity();
  const binaries = await prepareBinaries(findPackageDir(), layout.lib);
  const settings = decideSettings(1024, dataDir);
  const connection = { host: dataDir, port: 5432, user: 'skerry', database: 'postgres' };
  const plan = { binaries, identity, cluster: layout.cluster, settings, connection, lockFd: lock.fd, log };
  const server = await startServer(plan);
  lock[Symbol.dispose]();
  return server;
}

/** What a lock file says of a process that has ended. */
async function describeDeadProcess(): Promise<string> {
  const child = spawn('true');
  await once(child, 'exit');
  return `${child.pid} 1\n`;
}

/** /proc/locks has a line for each waiter, marked by an arrow, with the file's inode (proc(5)). */
async function isLockAwaited(file: string): Promise<boolean> {
  const { ino } = await stat(file);
  const lines = (await readFile('/proc/locks', 'utf8')).split('\n');
  return lines.some((line) => line.includes('->') && line.includes(`:${ino} `));
}
