import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { createTestCore, signers } from '../../../testing/core.ts';
import { EndpointBook } from '../endpoints.ts';
import { fits, indexSubscribers } from '../subscriptions.ts';
import { deliverFor, LOCAL, register, startReceiver } from '../testing/setup.ts';
import { DeliveryPlanner } from './planner.ts';
import {
  type AttemptFailure,
  cooldownMs,
  decideNext,
  parseRetryAfterMs,
  RETRY_PAUSES_MS,
} from './schedule.ts';

const failure = (more: Partial<AttemptFailure> = {}): AttemptFailure => ({
  code: 'WEBHOOK_ANSWER_REFUSED',
  message: '',
  status: 500,
  retryAfterMs: null,
  ...more,
});

const ATTEMPTS_MAX = RETRY_PAUSES_MS.length + 1;

describe('the schedule of retries', () => {
  test('ten attempts over about three days, each pause with some jitter, then dead', () => {
    let nowMs = 0;
    for (let attempts = 1; attempts < ATTEMPTS_MAX; attempts++) {
      const next = decideNext({ ok: false, failure: failure(), durationMs: 0 }, attempts, nowMs, 0.5);
      assert.ok(next.state === 'waiting');
      const pauseMs = next.atMs - nowMs;
      assert.ok(pauseMs >= RETRY_PAUSES_MS[attempts - 1]! && pauseMs <= RETRY_PAUSES_MS[attempts - 1]! * 1.2);
      nowMs = next.atMs;
    }
    assert.ok(nowMs > 3 * 86_400_000 && nowMs < 4 * 86_400_000);
    const last = decideNext({ ok: false, failure: failure(), durationMs: 0 }, ATTEMPTS_MAX, nowMs, 0.5);
    assert.equal(last.state, 'dead');
    const gone = failure({ code: 'WEBHOOK_GONE', status: 410 });
    assert.equal(decideNext({ ok: false, failure: gone, durationMs: 0 }, 1, 0, 0).state, 'dead');
  });

  test('Retry-After: seconds, dates, bounds, and what nobody understands', () => {
    assert.equal(parseRetryAfterMs('120', 0), 120_000);
    assert.equal(parseRetryAfterMs(new Date(60_000).toUTCString(), 0), 60_000);
    assert.equal(parseRetryAfterMs('9999999999', 0), 86_400_000);
    assert.equal(parseRetryAfterMs(new Date(0).toUTCString(), 60_000), 0);
    assert.equal(parseRetryAfterMs('soon', 0), null);
    fc.assert(
      fc.property(fc.string(), (text) => {
        const ms = parseRetryAfterMs(text, 0);
        return ms === null || (ms >= 0 && ms <= 86_400_000);
      }),
    );
    const held = decideNext(
      { ok: false, failure: failure({ retryAfterMs: 3_600_000 }), durationMs: 0 },
      1,
      0,
      0,
    );
    assert.deepEqual(held, { state: 'waiting', atMs: 3_600_000 });
  });

  test('an endpoint that keeps failing is left alone for a minute at most', () => {
    for (let failures = 1; failures < 100; failures++) {
      const ms = cooldownMs(failures, 0);
      assert.ok(ms >= 250 && ms <= 60_000);
    }
  });
});

test('the index of subscribers finds exactly those whose filters fit', () => {
  const value = fc.constantFrom('a', 'b', 'c');
  const filter = fc.option(fc.uniqueArray(value, { minLength: 1 }), { nil: undefined });
  const filters = fc
    .record({ types: filter, channels: filter, senders: filter, tags: filter })
    .map((all) => Object.fromEntries(Object.entries(all).filter(([, one]) => one !== undefined)));
  const one = fc.option(value, { nil: undefined });
  const traits = fc.record({ type: one, channel: one, sender: one, tags: fc.array(value) });
  fc.assert(
    fc.property(fc.array(filters, { maxLength: 30 }), traits, (all, some) => {
      const subscribers = all.map((filters, webhook) => ({ webhook, events: ['message.new'], filters }));
      const found = indexSubscribers(subscribers)('message.new', some).toSorted((a, b) => a - b);
      const expected = subscribers.filter((s) => fits(s.filters, some)).map((s) => s.webhook);
      assert.deepEqual(found, expected);
      assert.deepEqual(indexSubscribers(subscribers)('program.executed', some), []);
    }),
  );
});

test('who plans finds out by one look that there is nothing to do, and hears of events, webhooks and replays', async () => {
  await using core = await createTestCore({ webhooks: LOCAL });
  const { db, secrets, now } = core.rooms;
  const book = new EndpointBook(secrets);
  const planner = new DeliveryPlanner({ db, book, capacity: { leaseMs: 1, roomFor: () => 0 }, now });
  const plan = async () => {
    assert.ok(await planner.isDue());
    for (let rounds = 0; await planner.isDue(); rounds++) {
      assert.ok(rounds < 5, 'it comes to an end');
      await planner.run();
      if (book.hasBehind) await planner.catchUp();
    }
  };
  await plan();
  const send = () => core.send(signers.bob, { type: 'POST', content: { type: 'note', content: {} } });
  await send();
  assert.equal(await planner.isDue(), false, 'nobody is to be told of it');
  await register(core, signers.alice, { url: 'http://127.0.0.1:9/' });
  await plan();
  assert.equal(book.liveCount, 1);
  const planned = () => db.selectFrom('webhook_deliveries').selectAll().execute();
  assert.deepEqual(await planned(), [], 'of what came before it nothing is told');
  await send();
  await plan();
  assert.equal((await planned()).length, 1);
  await db.deleteFrom('webhook_deliveries').execute();
  const [{ number: webhook } = assert.fail()] = await db.selectFrom('webhooks').select('number').execute();
  await db.insertInto('webhook_replays').values({ webhook, next_seq: 1, last_seq: 1 }).execute();
  assert.ok(await planner.isDue());
  await planner.replay();
  assert.equal(await planner.isDue(), false);
  const replayed = async (before: { attempts: number; due_ms: number }) => {
    await db.updateTable('webhook_deliveries').set(before).execute();
    await db.insertInto('webhook_replays').values({ webhook, next_seq: 1, last_seq: 1 }).execute();
    await planner.replay();
    return db.selectFrom('webhook_deliveries').select(['attempts', 'due_ms']).executeTakeFirstOrThrow();
  };
  const laterMs = now() + 3_600_000;
  const retried = await replayed({ attempts: 3, due_ms: laterMs });
  assert.ok(retried.attempts === 0 && retried.due_ms <= now(), 'what waits for a retry is due now');
  assert.deepEqual(await replayed({ attempts: 3, due_ms: 7 }), { attempts: 0, due_ms: 7 }, 'in its place');
  const claimed = { attempts: 0, due_ms: laterMs };
  assert.deepEqual(await replayed(claimed), claimed, 'what is under way for the first time is left alone');
});

test('webhooks that catch up and replays take turns: twenty that have a long way to go hold nobody up', async () => {
  await using core = await createTestCore({ webhooks: LOCAL });
  const { db, secrets, now } = core.rooms;
  const filters = { channels: ['nobody'] };
  const first = await register(core, signers.alice, { url: 'http://127.0.0.1:9/', filters });
  await core.send(signers.bob, { type: 'POST', content: { type: 'note', content: {} } });
  // As many events as take several rounds, for 21 webhooks that none of them is for.
  await sql`insert into events (seq, kind, data, time_ms) select n, e.kind, e.data, e.time_ms
    from events e, generate_series(2, 1200) n where e.seq = 1`.execute(db);
  await sql`update event_counter set last_seq = 1200`.execute(db);
  await sql`insert into webhooks (webhook_id, owner, url, events, filters, secret, created, behind_seq, version)
    select webhook_id || n, owner, url, events, filters, secret, created, 0, 1
    from webhooks, generate_series(2, 21) n where webhook_id = ${first}`.execute(db);
  const { number: last } = await db
    .selectFrom('webhooks')
    .select(sql<number>`max(number)`.as('number'))
    .executeTakeFirstOrThrow();
  const book = new EndpointBook(secrets);
  const planner = new DeliveryPlanner({ db, book, capacity: { leaseMs: 1, roomFor: () => 0 }, now });
  for (let rounds = 0; (await planner.run()).isMore; rounds++) assert.ok(rounds < 5, 'it comes to an end');
  const roundsUntil = async (one: () => Promise<{ readonly touched: ReadonlySet<number> }>) => {
    for (let round = 1; ; round++) if ((await one()).touched.has(last)) return round;
  };
  assert.equal(await roundsUntil(() => planner.catchUp()), 2);
  await sql`insert into webhook_replays (webhook, next_seq, last_seq)
    select number, 1, 1200 from webhooks order by number`.execute(db);
  assert.equal(await roundsUntil(() => planner.replay()), 2);
});

test('webhooks that were read on another timeline of the database are forgotten: their numbers may be those of others', async () => {
  await using core = await createTestCore({ webhooks: LOCAL });
  const { db, secrets } = core.rooms;
  await register(core, signers.alice, { url: 'http://127.0.0.1:9/of-alice' });
  const [{ number } = assert.fail()] = await db.selectFrom('webhooks').select('number').execute();
  const book = new EndpointBook(secrets);
  const pathOn = async (timeline: string) => {
    const { version } = await db.selectFrom('webhook_planner').select('version').executeTakeFirstOrThrow();
    await book.refresh(db, { version, timeline });
    return book.find(number)?.url.pathname;
  };
  assert.equal(await pathOn('00000001'), '/of-alice');
  // A standby that has not received it is promoted, and the next webhook gets its number, and the version.
  await db.updateTable('webhooks').set({ webhook_id: 'another', url: 'http://127.0.0.1:9/of-bob' }).execute();
  assert.equal(await pathOn('00000001'), '/of-alice', 'what it has read is not read again');
  assert.equal(await pathOn('00000002'), '/of-bob');
});

describe('many endpoints', () => {
  test('10,000 webhooks: an event finds its few listeners at once', async (t) => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using receiver = await startReceiver();
    const first = await register(core, signers.alice, { url: `${receiver.url}/0` });
    // As registration writes them, but for their owners.
    await sql`
      insert into webhooks (webhook_id, owner, url, events, secret, created, filters, behind_seq, version)
      select webhook_id || '-' || n, 'owner-' || n, ${`${receiver.url}/`} || n, events, secret, created,
        jsonb_build_object('channels', jsonb_build_array('channel-' || n)), 0, 1
      from webhooks, generate_series(1, 9999) n where webhook_id = ${first}`.execute(core.rooms.db);
    // A sealed secret opens under one webhook's id alone.
    const box = core.rooms.secrets;
    for (const n of [7, 4242])
      await core.rooms.db
        .updateTable('webhooks')
        .set({ secret: box.seal('s', `${first}-${n}`) })
        .where('webhook_id', '=', `${first}-${n}`)
        .execute();
    await sql`update webhook_planner set version = version + 1`.execute(core.rooms.db);
    const startMs = performance.now();
    await using _deliverer = deliverFor(core);
    const content = { type: 'note', content: {} };
    await core.send(signers.bob, { type: 'POST', channel: 'channel-7', content });
    await core.send(signers.bob, { type: 'POST', channel: 'channel-4242', content });
    await receiver.waitFor((all) => all.length === 4);
    t.diagnostic(
      `two events among 10,000 webhooks: ${Math.round(performance.now() - startMs)} ms from the start`,
    );
    const paths = receiver.received.map(({ path }) => path).toSorted();
    assert.deepEqual(paths, ['/0', '/0', '/4242', '/7']);
    const planned = await core.rooms.db.selectFrom('webhook_deliveries').select('seq').execute();
    assert.equal(planned.length, 4);
  });

  test('dead endpoints do not slow others: 40 that never answer, 10 that do', async (t) => {
    await using core = await createTestCore({ webhooks: { ...LOCAL, timeoutMs: 3_600_000 } });
    await using dead = await startReceiver();
    dead.answer = () => {};
    await using alive = await startReceiver();
    for (let n = 0; n < 40; n++) await register(core, signers.alice, { url: `${dead.url}/${n}` });
    for (let n = 0; n < 10; n++) await register(core, signers.alice, { url: `${alive.url}/${n}` });
    await using _deliverer = deliverFor(core);
    // None waits for a deadline of the dead: it would be here for an hour.
    const startMs = performance.now();
    for (let n = 0; n < 50; n++)
      await core.send(signers.bob, { type: 'POST', content: { type: 'note', content: { n } } });
    await alive.waitFor((all) => all.length === 500);
    const tookMs = performance.now() - startMs;
    const sentMs =
      alive.received.at(-1)!.atMs - Date.parse(JSON.parse(alive.received.at(-1)!.body).timestamp);
    t.diagnostic(
      `500 deliveries beside 2,000 to the dead: ${Math.round(tookMs)} ms; the last ${sentMs} ms after its event`,
    );
  });
});
