import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { createTestCore } from '../testing/core.ts';
import { stateHandlers } from './state.ts';

test('one digest of everything is read at a time, whoever asks and however much changes meanwhile', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const read = async (path: string) => Number((await core.get(path)).body.cursor);
  // What was asked before begins before this, on a connection that is open already.
  const letBegin = () => Promise.all(Array.from({ length: 5 }, () => read('/state/digest/messages')));
  await letBegin();
  const countWaiting = async () => {
    const { rows } = await sql<{ count: number }>`select count(*) as count from pg_locks l
      join pg_database d on d.oid = l.database and d.datname = current_database()
      where not granted and relation = 'metrics_messages'::regclass`.execute(db);
    return rows[0]!.count;
  };
  const asked: Promise<number>[] = [];
  await db.transaction().execute(async (trx) => {
    await sql`lock table metrics_messages in access exclusive mode`.execute(trx);
    for (let n = 0; n < 2; n++) {
      asked.push(read('/state/digest/derived'));
      await until('one is being read', countWaiting, (count) => count > 0);
      await letBegin();
      await sql`update event_counter set last_seq = last_seq + 1`.execute(db);
    }
    asked.push(read('/state/digest'));
    await letBegin();
    assert.equal(await countWaiting(), 1);
    // It reads one small table.
    assert.ok((await read('/state/digest/instances')) > 0);
  });
  const [first, ...others] = await Promise.all(asked);
  assert.deepEqual(
    others,
    others.map(() => first! + 2),
  );
});

test('who asks in the moment in which a digest begins to be read shares that reading', async () => {
  await using core = await createTestCore();
  const { getStateDigest } = stateHandlers(core.rooms) as unknown as Record<string, () => Promise<object>>;
  const read = await Promise.all(Array.from({ length: 5 }, () => getStateDigest!()));
  assert.equal(new Set(read).size, 1);
});
