import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { keepDigest } from '../../store/message-set.ts';
import type { Schema } from '../../store/schema.ts';
import { lockWrites } from '../../store/write-lock.ts';
import { MIGRATIONS } from '../../testing/core.ts';
import { isAnyWaiting } from '../../testing/waiting.ts';
import { numberEvents } from './append.ts';

test('whoever holds the lock of all who write may not stand still with it for long', async () => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const ask = sql<{ limit: string }>`select current_setting('idle_in_transaction_session_timeout') as limit`;
  const { kysely: db } = database;
  const limitOf = async (one: typeof db) => (await ask.execute(one)).rows[0]?.limit;
  const own = await limitOf(db);
  const within = await db.transaction().execute(async (trx) => {
    await lockWrites(trx);
    return limitOf(trx);
  });
  assert.deepEqual([own, within, await limitOf(db)], ['1min', '5s', '1min']);
});

test('whoever waited for the lock has the number and the digest that the one before it left', async () => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { kysely: db } = database;
  const digest = { count: 2, digest: 'a'.repeat(64) };
  const second = await db.transaction().execute(async (trx) => {
    const empty = await lockWrites(trx);
    const { timeline } = empty;
    assert.match(timeline, /^[0-9A-F]{8}-[0-9]+-[0-9]+$/);
    assert.deepEqual(empty, { lastSeq: 0, digest: { count: 0, digest: '0'.repeat(64) }, timeline });
    const waiting = db.transaction().execute(lockWrites);
    await until('the second one waits', () => isAnyWaiting(db));
    await numberEvents(7).execute(trx);
    await keepDigest(digest).execute(trx);
    // Within an object, since a promise by itself would be waited for here.
    return { waiting, timeline };
  });
  const { waiting, timeline } = second;
  assert.deepEqual(await waiting, { lastSeq: 7, digest, timeline });
});
