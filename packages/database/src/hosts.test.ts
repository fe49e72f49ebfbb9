import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { openDatabase, openPool } from './connect.ts';
import { asDatabaseError } from './failure.ts';
import { PrimaryClient, reachOf } from './hosts.ts';
import type { TestServer } from './testing/server.ts';
import { startTcpTestServer } from './testing/tcp-server.ts';

const log = createLogger('test', 'silent');
const PASSWORD = 'correct-horse';

const authorityOf = ({ url }: TestServer) => new URL(url).host;
const urlOf = (...servers: TestServer[]) =>
  `postgresql://operator:${PASSWORD}@${servers.map(authorityOf).join(',')}/postgres`;

describe('a connection string', () => {
  test('of one host is passed on as it is', () => {
    const url = 'postgresql://a:b@db.example:6432/skerry?sslmode=require';
    assert.deepEqual(reachOf(url), { connectionString: url });
    assert.deepEqual(reachOf('postgresql:///skerry?host=/run/postgresql'), {
      connectionString: 'postgresql:///skerry?host=/run/postgresql',
    });
  });

  test('of several keeps its user, database and parameters', () => {
    const { connectionString, primary } = reachOf(
      'postgresql://a:b@one,[2001:db8::2]:6432/skerry?sslmode=require',
    );
    assert.equal(connectionString, 'postgresql://a:b@one/skerry?sslmode=require');
    assert.ok(primary);
  });

  test('that is wrong says what is allowed, without the password', () => {
    // An unescaped @ belongs to the password, as URLs have it.
    assert.equal(
      reachOf('postgresql://a:hun@ter,2@one,two/skerry').connectionString,
      'postgresql://a:hun@ter,2@one/skerry',
    );
    assert.throws(
      () => reachOf('postgresql://a:hunter2,b/c@one/skerry'),
      ({ message }: Error) => !message.includes('hunter2'),
    );
    for (const hosts of ['one,two:port', 'one,', 'one,2001:db8::2', `${'a,'.repeat(16)}b`])
      assert.throws(
        () => reachOf(`postgresql://a:hunter2@${hosts}/skerry`),
        (error: Error & { code: string }) =>
          error.code === 'INVALID_CONFIG' && !error.message.includes('hunter2'),
      );
  });
});

test('a connection that breaks while nobody waits for it does not end the process', () => {
  assert.doesNotThrow(() => new PrimaryClient().emit('error', new Error('read ECONNRESET')));
});

test('of several servers the one is found that takes writes, and found again after a failover', async () => {
  await using first = await startTcpTestServer(log, { password: PASSWORD });
  await using second = await startTcpTestServer(log, { password: PASSWORD, isStandby: true });
  await using administrator = await openPool({ connectionString: urlOf(second) }, { log });
  await using database = await openDatabase({
    databaseUrl: urlOf(second, first),
    dataDir: '/nonexistent',
    log,
  });
  const portOf = async () => {
    const { rows } = await database.pool.query("select current_setting('port') as port");
    return Number(rows[0].port);
  };
  const write = () => database.pool.query('create table if not exists written (n int)');
  await write();
  assert.equal(await portOf(), Number(new URL(first.url).port));

  process.kill(first.pid, 'SIGQUIT');
  const failure = await until(
    'no server takes writes',
    () =>
      write().then(
        () => undefined,
        (error: unknown) => error,
      ),
    (error) => error instanceof AggregateError,
  );
  assert.match(String(failure), /a standby/);
  assert.equal(asDatabaseError(failure)?.code, 'DATABASE_UNAVAILABLE');

  await administrator.pool.query('select pg_promote()');
  await until('the new primary is written to', () =>
    write().then(
      () => true,
      () => false,
    ),
  );
  assert.equal(await portOf(), Number(new URL(second.url).port));
});

test('a connection whose server takes no writes any more is left, and another one is sought', async () => {
  await using first = await startTcpTestServer(log, { password: PASSWORD });
  await using second = await startTcpTestServer(log, { password: PASSWORD, isStandby: true });
  await using administrator = await openPool({ connectionString: urlOf(second) }, { log });
  await using database = await openDatabase({
    databaseUrl: urlOf(first, second),
    dataDir: '/nonexistent',
    log,
  });
  const client = await database.pool.connect();
  try {
    await administrator.pool.query('select pg_promote()');
    await client.query('set session characteristics as transaction read only');
    await assert.rejects(client.query('create table written (n int)'), { code: '25006' });
  } finally {
    client.release();
  }
  await until('another connection', () =>
    database.pool.query('create table written (n int)').then(
      () => true,
      () => false,
    ),
  );
});
