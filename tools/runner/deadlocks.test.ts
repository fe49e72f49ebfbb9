import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import pg from 'pg';
import { startTestServer } from '../../packages/database/src/testing/server.ts';
import { Deadlocks } from './deadlocks.ts';

test('two transactions that wait for each other are told with their statements, from the log of the server', async () => {
  const deadlocks = new Deadlocks();
  const write = (line: string) => deadlocks.note((JSON.parse(line) as { msg: string }).msg);
  const log = createLogger('test', 'debug', { write });
  await using server = await startTestServer(log, { deadlock_timeout: '10ms' });
  await using stack = new AsyncDisposableStack();
  const open = async () => {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    stack.defer(() => client.end());
    return client;
  };
  const [one, other] = [await open(), await open()];
  await one.query('create table rows as select n from generate_series(1, 2) n');
  const lock = (client: pg.Client, n: number) => client.query(`update rows set n = n where n = ${n}`);
  for (const [at, client] of [one, other].entries()) {
    await client.query('begin');
    await lock(client, at + 1);
  }
  const ends = await Promise.allSettled([lock(one, 2), lock(other, 1)]);
  assert.equal(ends.filter(({ status }) => status === 'rejected').length, 1);
  // The log comes by a way of its own, line by line.
  await until(
    'it is told',
    () => deadlocks.found,
    ([first = '']) => /waits for ShareLock.+update rows set n = n where n = 2/s.test(first),
  );
  assert.equal(deadlocks.found.length, 1);
});
