import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger, Slots } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { createTestDatabase } from '../testing/database.ts';
import { partOf } from './pool-part.ts';

test('who asks through a part of a pool leaves the rest to others, and waits in line', async () => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase({ connectionsMax: 3, log });
  const { pool } = database;
  const part = partOf(pool, new Slots(2));
  const held = [await part.connect(), await part.connect()];
  const order: string[] = [];
  const waiting = ['first', 'second'].map(async (name) => {
    await part.query('select 1');
    order.push(name);
  });
  assert.equal(part.waitingCount, 2);
  await pool.query('select 1');
  assert.deepEqual([order, pool.waitingCount], [[], 0]);
  held[0]!.release();
  await Promise.all(waiting);
  assert.deepEqual([order, part.waitingCount], [['first', 'second'], 0]);
  await assert.rejects(part.query('no statement'), { code: '42601' });
  held[1]!.release();
  assert.throws(() => held[1]!.release(), /already been released/);
  const all = await Promise.all([part.connect(), part.connect()]);
  for (const client of all) client.release();
});

test('what a part is not given leaves its places free', async () => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase({ log });
  let isAway = true;
  const connect = () => (isAway ? Promise.reject(new Error('away')) : database.pool.connect());
  const part = partOf(Object.create(database.pool, { connect: { value: connect } }), new Slots(1));
  for (let n = 0; n < 2; n++) await assert.rejects(part.query('select 1'), /away/);
  isAway = false;
  assert.equal((await part.query('select 1')).rowCount, 1);
});

test('who is refused a turn hears that others have them, or that the database is away where nobody was given a connection', async () => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase({ log });
  const { pool } = database;
  const away = Promise.withResolvers<never>();
  let isAway = false;
  const connect = () => (isAway ? away.promise : pool.connect());
  let taken = 0;
  const take = async () => {
    if (taken === 1) throw new AppError('OVERLOADED', 'too many');
    taken++;
    return { [Symbol.dispose]: () => void taken-- };
  };
  const part = partOf(Object.create(pool, { connect: { value: connect } }), { take, waiting: 0 });
  const client = await part.connect();
  await assert.rejects(part.query('select 1'), { code: 'OVERLOADED' });
  client.release();
  isAway = true;
  const waiting = part.query('select 1');
  await assert.rejects(part.query('select 1'), { code: 'DATABASE_UNAVAILABLE' });
  away.reject(new Error('away'));
  await assert.rejects(waiting, /away/);
});

test('who is refused a turn that another part has is not told that the database is away', async () => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase({ log });
  const given = { connections: 0 };
  const refused = { take: () => Promise.reject(new AppError('OVERLOADED', 'too many')), waiting: 0 };
  const other = partOf(database.pool, refused, given);
  const client = await partOf(database.pool, new Slots(1), given).connect();
  await assert.rejects(other.query('select 1'), { code: 'OVERLOADED' });
  client.release();
  await assert.rejects(other.query('select 1'), { code: 'DATABASE_UNAVAILABLE' });
});
