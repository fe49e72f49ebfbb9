import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { MIGRATIONS } from '../../testing/core.ts';
import { lockEvents } from './append.ts';

test('whoever holds the lock of all who write may not stand still with it for long', async () => {
  const log = createLogger('test', 'silent');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const ask = sql<{ limit: string }>`select current_setting('idle_in_transaction_session_timeout') as limit`;
  const { kysely: db } = database;
  const limitOf = async (one: typeof db) => (await ask.execute(one)).rows[0]?.limit;
  const own = await limitOf(db);
  const within = await db.transaction().execute(async (trx) => {
    await lockEvents(trx);
    return limitOf(trx);
  });
  assert.deepEqual([own, within, await limitOf(db)], ['1min', '10s', '1min']);
});
