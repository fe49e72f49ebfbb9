import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError } from '@skerry/protocol';
import { sql } from 'kysely';
import { isTooLong } from './failure.ts';
import { type ReadOutcome, Standby } from './standby.ts';
import { createTestDatabase } from './testing/database.ts';

const log = createLogger('test', 'silent');

test('what takes too long at a standby has not failed there: its connection is kept, and the primary is not asked the same', async () => {
  await using database = await createTestDatabase<unknown>({ log });
  // Whoever reads from it cannot tell.
  await using standby = await Standby.open({ url: database.url, log });
  const outcomes: ReadOutcome[] = [];
  const reads = standby.createDatabase<unknown>(database.pool, {
    readPlace: async () => 1,
    note: (outcome) => void outcomes.push(outcome),
  });
  const session = () =>
    reads.connection().execute(async (on) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(on);
      return rows[0]!.pid;
    });
  await standby.run(1, async () => {
    // One that takes a second to let anybody in, on a busy machine, is not asked for a while.
    await until('the standby answers', async () => {
      await session();
      return outcomes.at(-1) === 'standby';
    });
    outcomes.length = 0;
    const first = await session();
    const list = reads.transaction().execute(async (trx) => {
      await sql`set local statement_timeout = 1`.execute(trx);
      await sql`select pg_sleep(60)`.execute(trx);
    });
    await assert.rejects(list, isTooLong);
    assert.equal(await session(), first);
  });
  assert.deepEqual(outcomes, ['standby', 'standby', 'standby']);
});

test('whoever is refused a turn at a standby is told so, and others go on reading there', async () => {
  await using database = await createTestDatabase<unknown>({ log });
  await using standby = await Standby.open({ url: database.url, log });
  const outcomes: ReadOutcome[] = [];
  let isRefused = false;
  const reads = standby.createDatabase<unknown>(database.pool, {
    readPlace: async () => 1,
    note: (outcome) => void outcomes.push(outcome),
    turns: {
      waiting: 0,
      take: async () => {
        if (isRefused) throw new AppError('RATE_LIMITED', 'it has its share');
        return { [Symbol.dispose]: () => {} };
      },
    },
  });
  const ask = () => sql`select 1`.execute(reads);
  await standby.run(1, async () => {
    await until('the standby answers', async () => {
      await ask();
      return outcomes.at(-1) === 'standby';
    });
    outcomes.length = 0;
    await reads.connection().execute(async () => {
      isRefused = true;
      await assert.rejects(ask(), { code: 'RATE_LIMITED' });
      isRefused = false;
    });
    await ask();
  });
  assert.deepEqual(outcomes, ['standby', 'standby']);
});
