import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { createTestCore } from '../../../testing/core.ts';
import type { Endpoint } from '../endpoints.ts';
import type { Next } from './schedule.ts';
import { Settler } from './settler.ts';

const ENDPOINT: Endpoint = {
  number: 1,
  webhookId: 'one',
  url: new URL('https://example.org/'),
  events: ['message.new'],
  filters: {},
  concurrency: 8,
  status: 'active',
  behindSeq: null,
  failingSinceMs: null,
  holdUntilMs: 0,
  secrets: () => [],
};
const SEQS = [1, 2, 3];

test('outcomes of several turns are written by one statement, at once where the node stops', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  await sql`insert into webhook_deliveries (webhook, seq, event, due_ms, planned_ms)
    select 1, seq, 'message.new', 0, 0 from unnest(${SEQS}::bigint[]) seq`.execute(db);
  // Each statement has a time of its own.
  let nowMs = 0;
  const settler = new Settler({
    ...{ db, now: () => ++nowMs, log: createLogger('core', 'fatal') },
    gather: (signal) => once(signal, 'abort'),
  });
  const readTimes = async () =>
    (
      await sql<{ settled_ms: number | null }>`select settled_ms from webhook_deliveries`.execute(db)
    ).rows.map((row) => row.settled_ms);
  for (const seq of SEQS) {
    const claimed = { webhook: 1, seq, attempts: 0, plannedMs: 0, leaseEndMs: 0 };
    settler.add(ENDPOINT, claimed, { ok: true, status: 204, durationMs: 1 }, { state: 'delivered' });
    await turn();
    assert.deepEqual(await readTimes(), [null, null, null]);
  }
  await settler.close();
  const [first, ...others] = await readTimes();
  assert.equal(typeof first, 'number');
  assert.deepEqual(others, [first, first]);
});

test('a success ends a failure that only another process knows of, and none fails since before that', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  await sql`insert into webhooks (webhook_id, owner, url, events, secret, created)
    values ('one', 'owner', 'https://example.org/', '{}', '', 0)`.execute(db);
  const claimed = { webhook: 1, seq: 1, attempts: 0, plannedMs: 0, leaseEndMs: 0 };
  let nowMs = 1_000_000;
  const start = () =>
    new Settler({ db, now: () => nowMs, log: createLogger('core', 'fatal'), gather: async () => {} });
  const failure = { code: 'WEBHOOK_ANSWER_REFUSED', message: '', status: 429, retryAfterMs: 1_000 } as const;
  const processes = {
    one: { of: start(), endpoint: { ...ENDPOINT } },
    other: { of: start(), endpoint: ENDPOINT },
  };
  const read = () =>
    db
      .selectFrom('webhooks')
      .select(['failing_since_ms', 'hold_until_ms', 'delivered_ms'])
      .executeTakeFirstOrThrow();
  const settle = async (name: keyof typeof processes, isOk: boolean, expected: (number | null)[]) => {
    nowMs += 10;
    const { of: settler, endpoint } = processes[name];
    if (isOk)
      settler.add(endpoint, claimed, { ok: true, status: 204, durationMs: 1 }, { state: 'delivered' });
    else
      settler.add(
        endpoint,
        claimed,
        { ok: false, failure, durationMs: 1 },
        { state: 'waiting', atMs: nowMs },
      );
    await until(`${name} has written it`, read, (row) => isDeepStrictEqual(Object.values(row), expected));
  };
  await settle('other', true, [null, 0, 1_000_010]);
  await settle('one', false, [1_000_020, 1_001_020, 1_000_010]);
  await settle('other', true, [null, 0, 1_000_010]);
  await settle('one', false, [1_000_040, 1_001_040, 1_000_010]);
  await settle('other', false, [1_000_040, 1_001_050, 1_000_010]);
  await Promise.all(Object.values(processes).map(({ of: settler }) => settler.close()));
});

test('an outcome is written while its owner changes the webhook, whose endpoint fails no longer after that', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  await sql`insert into webhooks (webhook_id, owner, url, events, secret, created, failing_since_ms)
    values ('one', 'owner', 'https://example.org/', '{}', '', 0, 1)`.execute(db);
  await sql`insert into webhook_deliveries (webhook, seq, event, due_ms, planned_ms)
    values (1, 1, 'message.new', 0, 0)`.execute(db);
  const settler = new Settler({
    ...{ db, now: () => 5, log: createLogger('core', 'fatal') },
    gather: async () => {},
  });
  await db.transaction().execute(async (trx) => {
    await sql`update webhooks set updated_ms = 1`.execute(trx);
    const claimed = { webhook: 1, seq: 1, attempts: 0, plannedMs: 0, leaseEndMs: 0 };
    settler.add(ENDPOINT, claimed, { ok: true, status: 204, durationMs: 1 }, { state: 'delivered' });
    const read = () => db.selectFrom('webhook_deliveries').select('state').executeTakeFirstOrThrow();
    await until('it is written', read, ({ state }) => state === 'delivered');
  });
  const read = () => db.selectFrom('webhooks').select('failing_since_ms').executeTakeFirstOrThrow();
  await until('it fails no longer', read, (row) => row.failing_since_ms === null);
  await settler.close();
});

test('a failure decides nothing about what was made due again meanwhile, by a replay or another claim; a success does', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  await sql`insert into webhook_deliveries (webhook, seq, event, due_ms, planned_ms)
    select 1, seq, 'message.new', 100 * seq, 0 from unnest(${SEQS}::bigint[]) seq`.execute(db);
  const settler = new Settler({
    db,
    now: () => 5,
    log: createLogger('core', 'fatal'),
    gather: async () => {},
  });
  const failure = { code: 'WEBHOOK_ANSWER_REFUSED', message: '', status: 500, retryAfterMs: null } as const;
  const fail = (seq: number, next: Next) =>
    settler.add(
      ENDPOINT,
      { webhook: 1, seq, attempts: 9, plannedMs: 0, leaseEndMs: 100 },
      { ok: false, failure, durationMs: 1 },
      next,
    );
  fail(1, { state: 'waiting', atMs: 7_000 });
  fail(2, { state: 'dead' });
  const late = { webhook: 1, seq: 3, attempts: 0, plannedMs: 0, leaseEndMs: 100 };
  settler.add(ENDPOINT, late, { ok: true, status: 204, durationMs: 1 }, { state: 'delivered' });
  const read = () =>
    db
      .selectFrom('webhook_deliveries')
      .select(['state', 'attempts', 'due_ms', 'settled_ms'])
      .select(sql<number>`jsonb_array_length(log)`.as('notes'))
      .orderBy('seq')
      .execute();
  const rows = await until('each is noted', read, (all) => all.every(({ notes }) => notes === 1));
  await settler.close();
  assert.deepEqual(
    rows.map(({ state, attempts, due_ms, settled_ms }) => [state, attempts, due_ms, settled_ms]),
    [
      ['waiting', 1, 7_000, null],
      ['waiting', 0, 200, null],
      ['delivered', 1, 5, 5],
    ],
  );
});
