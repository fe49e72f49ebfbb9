import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { createTestCore } from '../../testing/core.ts';
import { rewritePrices } from './write.ts';

test('F10: two processes that make the prices at once make them once', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const listPrices = () => db.selectFrom('credit_prices').selectAll().orderBy('kind').execute();
  const before = await listPrices();
  assert.ok(before.length > 0);
  await db.deleteFrom('credit_prices').execute();
  let second: Promise<unknown> | undefined;
  await db.transaction().execute(async (trx) => {
    await rewritePrices(trx);
    second = db.transaction().execute(rewritePrices);
    second.catch(() => {});
    // It has begun when it waits for what the first one holds.
    await until('the second one waits', async () => {
      const { rows } = await sql`
        select 1 from pg_locks join pg_stat_activity using (pid)
        where not granted and datname = current_database()`.execute(db);
      return rows.length > 0;
    });
  });
  await second;
  assert.deepEqual(await listPrices(), before);
});
