import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { type Database, openDatabase, openPool } from './connect.ts';
import { asDatabaseError } from './failure.ts';
import type { TestServer } from './testing/server.ts';
import { startTcpTestServer } from './testing/tcp-server.ts';
import { createWrite } from './write.ts';

const log = createLogger('test', 'silent');
const codeOf = (query: Promise<unknown>) =>
  query.then(
    () => 'answered',
    (error: unknown) => asDatabaseError(error)?.code ?? String(error),
  );
const causeOf = (query: Promise<unknown>) => query.then(() => 'answered', String);

/** Stops it, and lets it go on at the end, since a frozen one does not end. */
async function freeze({ pid }: TestServer): Promise<AsyncDisposable & { thaw(): Promise<void> }> {
  const thaw = () => signalServer(pid, 'SIGCONT');
  await signalServer(pid, 'SIGSTOP');
  return { thaw, [Symbol.asyncDispose]: thaw };
}

/** The server and all its processes, which are in a group of their own each. */
async function signalServer(pid: number, signal: NodeJS.Signals): Promise<void> {
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger);
  const parentOf = async (one: number) =>
    Number(/\) \S (\d+)/.exec(await readFile(`/proc/${one}/stat`, 'utf8').catch(() => ''))?.[1]);
  const parents = await Promise.all(pids.map(parentOf));
  for (const one of [pid, ...pids.filter((_, index) => parents[index] === pid)]) {
    try {
      process.kill(one, signal);
    } catch (error) {
      // A process of the server may end by itself meanwhile: its connection was given up.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** A primary and its standby, a database that knows both, and somebody who can promote the standby. */
async function startPair() {
  await using stack = new AsyncDisposableStack();
  const first = stack.use(await startTcpTestServer(log, { password: 'same' }));
  const second = stack.use(await startTcpTestServer(log, { password: 'same', isStandby: true }));
  const [one, two] = [first, second].map(({ url }) => new URL(url).host);
  const database = stack.use(
    await openDatabase({
      databaseUrl: `postgresql://operator:same@${one},${two}/postgres`,
      dataDir: '/nonexistent',
      log,
    }),
  );
  const administrator = stack.use(await openPool({ connectionString: second.url }, { log }));
  const owned = stack.move();
  return { first, second, database, administrator, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

describe('a frozen server', () => {
  test('holds no query for ever, and is used again when it goes on', async () => {
    await using server = await startTcpTestServer(log);
    const told: string[] = [];
    const telling = createLogger('test', 'info', {
      write: (line) => void told.push((JSON.parse(line) as { msg: string }).msg),
    });
    await using database = await openPool({ connectionString: server.url }, { log: telling });
    const { pool } = database;
    await pool.query('create table written (n int)');
    const idle = await Promise.all([pool.connect(), pool.connect()]);
    const write = createWrite(pool);
    const copying = await pool.connect();
    await copying.query('begin');
    for (const client of idle) client.release();
    await using frozen = await freeze(server);
    const inserted = pool.query('insert into written values (1)');
    const answers = await Promise.all([
      codeOf(inserted),
      codeOf(copying.query('commit')),
      codeOf(write(async ({ copy }) => copy('written', ['n'], [[2]]))),
    ]);
    copying.release();
    assert.deepEqual(answers, Array(3).fill('DATABASE_UNAVAILABLE'));
    // We gave it up, not the kernel after many minutes.
    assert.match(await causeOf(inserted), /the database has not answered for \d+ s, and lets nobody in/);
    await frozen.thaw();
    await until(
      'it is used again',
      () => codeOf(pool.query('select 1')),
      (code) => code === 'answered',
    );
    const ofAll = told.filter((msg) => /^the database/.test(msg));
    assert.deepEqual(ofAll, ['the database does not answer', 'the database answers again']);
  });

  test('keeps nobody waiting where another one has taken over', async () => {
    await using pair = await startPair();
    const { first, second, database, administrator } = pair;
    await database.pool.query('select 1');
    await using _frozen = await freeze(first);
    const stuck = codeOf(database.pool.query('select 1'));
    await administrator.pool.query('select pg_promote()');
    assert.equal(await stuck, 'DATABASE_UNAVAILABLE');
    const { rows } = await database.pool.query("select current_setting('port') as port");
    assert.equal(rows[0].port, new URL(second.url).port);
  });
});

test('a server that goes on after another one was promoted is left', async () => {
  await using pair = await startPair();
  const { second, database, administrator } = pair;
  const inUse = await database.pool.connect();
  try {
    await inUse.query('create table written (n int)');
    await administrator.pool.query('select pg_promote()');
    await until(
      'it is left also where it is in use',
      () => codeOf(inUse.query('insert into written values (1)')),
      (code) => code !== 'answered',
    );
  } finally {
    inUse.release();
  }
  const { rows } = await database.pool.query("select current_setting('port') as port");
  assert.equal(rows[0].port, new URL(second.url).port);
});

describe('a living server', () => {
  const delays = async ({ pool }: Database<unknown>, seconds: number) =>
    (await pool.query('select pg_sleep($1)', [seconds])).rowCount;

  test('may take its time', async () => {
    await using server = await startTcpTestServer(log);
    await using database = await openPool({ connectionString: server.url }, { log });
    assert.equal(await delays(database, 6), 1);
  });

  test('is not given up by a process that stands still itself', async () => {
    await using server = await startTcpTestServer(log);
    await using database = await openPool({ connectionString: server.url }, { log });
    const answer = delays(database, 8);
    // It is seen to wait; then one look comes late, and what that asks the server is not read in time.
    await delay(1_500);
    for (let pause = 0; pause < 2; pause++) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_200);
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    }
    assert.equal(await answer, 1);
  });

  test('whose commit waits for a standby in vain is not waited for', async () => {
    await using server = await startTcpTestServer(log);
    await using database = await openPool({ connectionString: server.url }, { log });
    const { pool } = database;
    await pool.query('create table written (n int)');
    await pool.query("alter system set synchronous_standby_names = 'nobody'");
    await pool.query('select pg_reload_conf()');
    const commits: Promise<string>[] = [];
    const waiting = async () => {
      const { rows } = await pool.query<{ pid: number }>(
        "select pid from pg_stat_activity where wait_event = 'SyncRep' order by query_start",
      );
      // The first ones may come before the setting is in force.
      if (rows.length < 2) commits.push(codeOf(sql`insert into written values (1)`.execute(database.kysely)));
      return rows;
    };
    const [first] = await until('two commits wait', waiting, ({ length }) => length === 2);
    await pool.query('select pg_cancel_backend($1)', [first!.pid]);
    const answers = await Promise.all(commits);
    assert.deepEqual(answers.slice(-2), ['DATABASE_UNAVAILABLE', 'DATABASE_UNAVAILABLE']);
    await pool.query('alter system reset synchronous_standby_names');
    await pool.query('select pg_reload_conf()');
    await until(
      'what was not acknowledged is there all the same',
      async () => (await pool.query('select from written')).rowCount,
      (count) => count === commits.length,
    );
  });
});
