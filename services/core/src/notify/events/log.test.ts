import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, MIGRATIONS, signers } from '../../testing/core.ts';
import { createEventLog } from './log.ts';

// 1 CPU second.
test('who waits is woken by a look where another process has written, and by none where nothing was', async () => {
  await using core = await createTestCore();
  const other = createEventLog(core.rooms.db);
  const stop = new AbortController();
  const wait = () => other.waitForMore(other.wakes, stop.signal);
  await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: {} } });
  const { wakes } = other;
  await other.look();
  assert.equal(other.wakes, wakes, 'nobody waits');
  const first = wait();
  await other.look();
  await first;
  assert.equal(other.wakes, wakes + 1);
  const second = wait();
  await other.look();
  assert.equal(other.wakes, wakes + 1, 'nothing was written');
  await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: { n: 2 } } });
  await other.look();
  await second;
  assert.equal(other.wakes, wakes + 2);
  stop.abort();
});

test('however many wait, one look a second asks for all of them, and wakes nobody where nothing came', async (t) => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { pool, kysely: db } = database;
  const events = createEventLog(db);
  await events.lastCursor();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let [looks, woken] = [0, 0];
  pool.on('acquire', () => looks++);
  const stop = new AbortController();
  const waiting = Array.from({ length: 20 }, () => events.waitForMore(0, stop.signal).then(() => woken++));
  const second = async () => {
    const looked = once(pool, 'release');
    t.mock.timers.tick(1_000);
    await Promise.race([looked, Promise.all(waiting)]);
    await turn();
  };
  await second();
  assert.deepEqual([looks, woken], [1, 0]);
  await db.updateTable('event_counter').set({ last_seq: 1 }).execute();
  await second();
  await Promise.all(waiting);
  assert.deepEqual([looks, woken], [3, 20]);
  await events.waitForMore(0, stop.signal);
  const { wakes } = events;
  const [one, other] = [events.waitForMore(wakes, stop.signal, 500), events.waitForMore(wakes, stop.signal)];
  t.mock.timers.tick(500);
  await one;
  stop.abort();
  await other;
  assert.equal(
    looks,
    3,
    'who has something else to look at is not kept, and nobody asks for those who are gone',
  );
  t.mock.timers.reset();
});
