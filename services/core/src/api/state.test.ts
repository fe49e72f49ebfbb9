import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { createTestCore, type TestCore } from '../testing/core.ts';
import type { Clock } from './shares/paced.ts';
import { stateHandlers } from './state.ts';

/** Digests that wait for a table which a test has locked. */
async function countReading(db: TestCore['rooms']['db']): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from pg_locks l
    join pg_database d on d.oid = l.database and d.datname = current_database()
    where not granted and relation = 'metrics_messages'::regclass`.execute(db);
  return rows[0]!.count;
}

test('one digest of everything is read at a time, whoever asks and however much changes meanwhile', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const read = async (path: string) => Number((await core.get(path)).body.cursor);
  // What was asked before begins before this, on a connection that is open already.
  const letBegin = () => Promise.all(Array.from({ length: 5 }, () => read('/state/digest/messages')));
  await letBegin();
  const asked: Promise<number>[] = [];
  await db.transaction().execute(async (trx) => {
    await sql`lock table metrics_messages in access exclusive mode`.execute(trx);
    for (let n = 0; n < 2; n++) {
      asked.push(read('/state/digest/derived'));
      await until(
        'one is being read',
        () => countReading(db),
        (count) => count > 0,
      );
      await letBegin();
      await sql`update event_counter set last_seq = last_seq + 1`.execute(db);
    }
    asked.push(read('/state/digest'));
    await letBegin();
    assert.equal(await countReading(db), 1);
    // It reads one small table.
    assert.ok((await read('/state/digest/instances')) > 0);
  });
  const [first, ...others] = await Promise.all(asked);
  assert.deepEqual(
    others,
    others.map(() => first! + 2),
  );
});

/** What a client asks, without HTTP in between. */
function handlersOf({ rooms }: TestCore, clock?: Clock) {
  const { db } = rooms;
  const clientOf = ({ headers }: { readonly headers: Record<string, unknown> }) => {
    const key = String(headers['x-client']);
    return { key, address: key, isExempt: key === 'own', isRelayed: false };
  };
  const { getStateDigest } = stateHandlers({ db, commonDb: db, clientOf }, clock) as unknown as {
    getStateDigest(asked: object): Promise<{ cursor: string }>;
  };
  return (client: string) => getStateDigest({ request: { headers: { 'x-client': client } } });
}

test('who asks in the moment in which a digest begins to be read shares that reading', async () => {
  await using core = await createTestCore();
  const ask = handlersOf(core);
  const read = await Promise.all(Array.from({ length: 5 }, () => ask('a')));
  assert.equal(new Set(read).size, 1);
});

test('however often strangers ask, a digest is read for a quarter of the time; our own wait for no rest', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  let nowMs = 0;
  const resting: { readonly act: () => void; readonly ms: number }[] = [];
  const clock = {
    // Each look is a second later, so that each reading takes one.
    now: () => (nowMs += 1_000),
    later: (act: () => void, ms: number) => void resting.push({ act, ms }),
  };
  const ask = handlersOf(core, clock);
  const change = () => sql`update event_counter set last_seq = last_seq + 1`.execute(db);
  const first = Number((await ask('a')).cursor);
  assert.deepEqual(await ask('b'), await ask('a'), 'nothing changed');
  assert.equal(resting.length, 0);
  await change();
  const waiting = [ask('a'), ask('b')];
  await until(
    'the next one waits',
    () => resting.length,
    (count) => count === 1,
  );
  assert.equal(resting[0]!.ms, 2_000, 'a second of the three has passed');
  await change();
  resting[0]!.act();
  for (const one of waiting) assert.equal(Number((await one).cursor), first + 2);
  await change();
  const stranger = ask('a');
  await until(
    'it waits again',
    () => resting.length,
    (count) => count === 2,
  );
  assert.equal(Number((await ask('own')).cursor), first + 3);
  assert.equal(Number((await stranger).cursor), first + 3);
});

test('what is asked for while a digest is read rests, too, once that has ended', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  let nowMs = 0;
  const resting = Promise.withResolvers<() => void>();
  const clock = { now: () => (nowMs += 1_000), later: (act: () => void) => resting.resolve(act) };
  const ask = handlersOf(core, clock);
  const { first, second } = await db.transaction().execute(async (trx) => {
    await sql`lock table metrics_messages in access exclusive mode`.execute(trx);
    const first = ask('a');
    await until(
      'it is read',
      () => countReading(db),
      (count) => count === 1,
    );
    await sql`update event_counter set last_seq = last_seq + 1`.execute(db);
    return { first, second: ask('b') };
  });
  const begun = second.then(() => 'read at once');
  await first;
  assert.equal(typeof (await Promise.race([resting.promise, begun])), 'function');
  (await resting.promise)();
  assert.equal(Number((await second).cursor), Number((await first).cursor) + 1);
});
