import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { signMessage } from '@skerry/client';
import { createLogger, type Logger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { Webhook } from 'standardwebhooks';
import { createTestCore, signers } from '../../testing/core.ts';
import { limitsExcept } from '../../testing/strangers.ts';
import { startDeliverer } from './delivery/deliverer.ts';
import { NOTES_MAX } from './delivery/deliveries.ts';
import { tidyWebhooks } from './delivery/upkeep.ts';
import { listDeliveries, type WebhookRow } from './owner-view.ts';
import { countWebhooks } from './register.ts';
import { stopWebhook } from './stop.ts';
import {
  answerWith,
  ask,
  deliverFor,
  LOCAL,
  type Received,
  register,
  SECRET,
  startReceiver,
} from './testing/setup.ts';

const post = (n: number) => ({ type: 'POST', content: { type: 'note', content: { n } } });
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

/** Keeps whatever is told to the log, before anything is hidden. */
const recordLog = (lines: string[]): Logger =>
  new Proxy(createLogger('test', 'silent'), {
    get: (logger, name) =>
      LEVELS.includes(String(name))
        ? (...told: unknown[]) => void lines.push(inspect(told, { depth: 8 }))
        : Reflect.get(logger, name),
  });

describe('what owners do with webhooks', () => {
  test('rotation: two signatures during the overlap, then the new one alone', async () => {
    let nowMs = Date.now();
    await using core = await createTestCore({ webhooks: LOCAL, now: () => nowMs });
    await using _deliverer = deliverFor(core);
    await using receiver = await startReceiver();
    const id = await register(core, signers.alice, { url: receiver.url });
    const fresh = 'whsec_bmV3IHNlY3JldCBvZiBhIHdlYmhvb2s=';
    const rotated = await ask(core, signers.alice, id, 'rotate', { secret: fresh, overlap_seconds: 60 });
    assert.equal(rotated.status, 200);
    const accepts = (secret: string, index: number) => {
      const { body, headers } = receiver.received[index]!;
      try {
        // The library compares the time with the machine's clock.
        const signed = new Webhook(secret);
        const given = signed.sign(
          String(headers['webhook-id']),
          new Date(Number(headers['webhook-timestamp']) * 1000),
          body,
        );
        return String(headers['webhook-signature']).split(' ').includes(given);
      } catch {
        return false;
      }
    };
    await core.send(signers.bob, post(1));
    await receiver.waitFor((all) => all.length === 1);
    assert.deepEqual([accepts(SECRET, 0), accepts(fresh, 0)], [true, true]);
    nowMs += 61_000;
    await core.send(signers.bob, post(2));
    await receiver.waitFor((all) => all.length === 2);
    assert.deepEqual([accepts(SECRET, 1), accepts(fresh, 1)], [false, true]);
    await tidyWebhooks({ db: core.rooms.db, log: createLogger('test', 'silent') }, nowMs);
    const kept = await core.rooms.db.selectFrom('webhooks').select('old_secret').executeTakeFirstOrThrow();
    assert.equal(kept.old_secret, null, 'the old secret is gone');
  });

  const limits = { 9000: limitsExcept('192.0.2.1'), 10000: limitsExcept('127.0.0.1') };
  for (const [max, own] of Object.entries(limits))
    test(`a node takes ${max} webhooks of all owners from ${max === '9000' ? 'strangers' : 'its operator'}; a deleted one makes room`, async () => {
      await using core = await createTestCore({ webhooks: LOCAL, settings: { limits: own } });
      const id = await register(core, signers.alice, { url: 'http://127.0.0.1:1/' });
      await sql`
      insert into webhooks (webhook_id, owner, url, events, secret, created)
      select 'w' || n, 'owner ' || n, 'http://127.0.0.1:1/', '{}', '', 0 from generate_series(2, ${Number(max)}::int) n`.execute(
        core.rooms.db,
      );
      const content = { url: 'http://127.0.0.1:1/', events: ['message.new'], secret: SECRET };
      const add = () => core.send(signers.bob, { type: 'WEBHOOK', content }, '/webhooks');
      const refused = await add();
      assert.deepEqual([refused.status, refused.body.code], [503, 'OVERLOADED']);
      assert.equal(refused.headers['retry-after'], '3600');
      assert.equal((await ask(core, signers.alice, id, 'delete')).status, 200);
      assert.equal((await add()).status, 200);
    });

  test('who registers and deletes for days makes no registration slower, and what is deleted is forgotten', async () => {
    let nowMs = Date.now();
    await using core = await createTestCore({ webhooks: LOCAL, now: () => nowMs });
    const { db } = core.rooms;
    const content = { url: 'http://127.0.0.1:1/', events: ['message.new'], secret: SECRET };
    const { body, itemHash } = signMessage({ type: 'WEBHOOK', content }, signers.alice);
    const sendAgain = async () => (await core.post('/webhooks', body)).body;
    await sendAgain();
    assert.deepEqual(await sendAgain(), { webhook_id: itemHash, status: 'success' });
    assert.equal((await ask(core, signers.alice, itemHash, 'delete')).status, 200);
    const { code, error } = await sendAgain();
    assert.equal(code, 'WEBHOOK_NOT_FOUND');
    assert.match(error, /was deleted: sign a new registration/);
    const owner = signers.alice.address;
    await sql`
      insert into webhooks (webhook_id, owner, url, events, secret, created, status, updated_ms)
      select 'w' || n, ${owner}, '', '{}', '', 0, case n when 1 then 'active' else 'deleted' end, ${nowMs}::bigint
      from generate_series(1, 2000) n`.execute(db);
    await sql`analyze webhooks`.execute(db);
    const { read, counted } = await db.transaction().execute(async (trx) => {
      // Of the connection, and of what it did shortly before, too.
      const countRead = async () => {
        const { rows } = await sql<{ read: number }>`
          select (idx_tup_fetch + seq_tup_read)::int as read from pg_stat_xact_user_tables where relname = 'webhooks'`.execute(
          trx,
        );
        return rows[0]!.read;
      };
      const before = await countRead();
      const counted = await countWebhooks(trx, owner, itemHash);
      return { counted, read: (await countRead()) - before };
    });
    assert.deepEqual(counted, { known: 'deleted', own: 1, all: 1 });
    assert.ok(read < 10, `${read} webhooks were looked at`);
    const kept = async () => {
      await tidyWebhooks({ db, log: createLogger('test', 'silent') }, nowMs);
      return (await db.selectFrom('webhooks').select('webhook_id').execute()).map((row) => row.webhook_id);
    };
    const { number } = await db
      .selectFrom('webhooks')
      .select('number')
      .where('webhook_id', '=', itemHash)
      .executeTakeFirstOrThrow();
    await db
      .insertInto('webhook_deliveries')
      .values({
        webhook: number,
        seq: 1,
        event: 'message.new',
        state: 'dead',
        due_ms: 0,
        planned_ms: 0,
        settled_ms: nowMs + 20 * DAY_MS,
        log: '[]',
      })
      .execute();
    nowMs += 29 * DAY_MS;
    assert.equal((await kept()).length, 2001);
    assert.equal((await sendAgain()).code, 'WEBHOOK_NOT_FOUND', 'it stays deleted');
    nowMs += 2 * DAY_MS;
    assert.deepEqual((await kept()).toSorted(), [itemHash, 'w1'].toSorted(), 'a delivery of it is kept yet');
    nowMs += 4 * DAY_MS;
    await kept();
    assert.deepEqual(await kept(), ['w1']);
    assert.equal((await sendAgain()).code, 'TIMESTAMP_TOO_OLD', 'and is not played again');
    assert.deepEqual(await kept(), ['w1']);
  });

  test('tests and replays of a webhook have their limit however many are asked for at once', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    const id = await register(core, signers.alice, { url: 'http://127.0.0.1:9/' });
    await core.send(signers.bob, post(1));
    const statusesOf = async (action: 'test' | 'replay', content: (n: number) => Record<string, unknown>) => {
      const asked = Array.from({ length: 16 }, (_, n) => ask(core, signers.alice, id, action, content(n)));
      return (await Promise.all(asked)).map(({ status }) => status).sort();
    };
    const content = { action: 'replay', webhook_id: id, since_ms: Date.now() + DAY_MS };
    const { body: signed } = signMessage({ type: 'WEBHOOK', content }, signers.alice);
    const sendAgain = async () => (await core.post(`/webhooks/${id}/replay`, signed)).body.code;
    await ask(core, signers.alice, id, 'pause');
    assert.equal(await sendAgain(), 'WEBHOOK_NOT_ACTIVE');
    await ask(core, signers.alice, id, 'resume');
    assert.equal(await sendAgain(), undefined, 'what was refused was not carried out');
    assert.equal(await sendAgain(), 'REQUEST_REPEATED');
    const limited = [...Array(10).fill(200), ...Array(6).fill(503)];
    assert.deepEqual(await statusesOf('test', () => ({})), limited);
    assert.deepEqual(await statusesOf('replay', (since_ms) => ({ since_ms })), limited);
  });

  test('test, log, replay of one and of a range, with the same ids; pause and resume keep the place', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using _deliverer = deliverFor(core);
    await using receiver = await startReceiver();
    const id = await register(core, signers.alice, { url: receiver.url });
    const tested = await ask(core, signers.alice, id, 'test');
    await receiver.waitFor((all) => all.length === 1);
    assert.equal(receiver.received[0]!.id, tested.body.event_id);
    assert.equal(JSON.parse(receiver.received[0]!.body).type, 'webhook.test');
    const startMs = Date.now();
    for (let n = 0; n < 3; n++) await core.send(signers.bob, post(n));
    await receiver.waitFor((all) => all.length === 4);
    // Several are under way at once, so they may come in another order than they have in the log.
    const cursorOf = ({ body }: Received) => Number(JSON.parse(body).data.cursor);
    const inOrder = receiver.received.slice(1).toSorted((one, other) => cursorOf(one) - cursorOf(other));
    const ids = inOrder.map((one) => one.id);
    assert.equal(new Set(ids).size, 3);
    const settled = async () => {
      const list = () => ask(core, signers.alice, id, 'deliveries', { state: 'delivered' });
      const { body } = await until('four are delivered', list, (told) => told.body.deliveries.length === 4);
      return body.deliveries;
    };
    const log = await settled();
    assert.deepEqual(
      log.slice(0, 3).map((one: { event_id: string }) => one.event_id),
      ids.toReversed(),
    );
    assert.equal(log[0].log[0].status, 204);
    const again = await ask(core, signers.alice, id, 'replay', { event_id: ids[1] });
    assert.equal(again.body.from_cursor, again.body.to_cursor);
    assert.match(again.body.to_cursor, /^[0-9]+$/);
    await receiver.waitFor((all) => all.length === 5);
    assert.equal(receiver.received[4]!.id, ids[1]);
    await settled();
    const range = await ask(core, signers.alice, id, 'replay', { since_ms: startMs - 1 });
    assert.deepEqual([range.status, range.body.to_cursor], [200, '3']);
    await receiver.waitFor((all) => all.length === 8);
    assert.deepEqual(new Set(receiver.received.slice(5).map((one) => one.id)), new Set(ids));
    await settled();
    const { body: noEvent } = await ask(core, signers.alice, id, 'replay', {
      event_id: tested.body.event_id,
    });
    assert.deepEqual([noEvent.from_cursor, noEvent.to_cursor], [null, null]);
    await receiver.waitFor((all) => all.length === 9);
    assert.equal(receiver.received[8]!.id, tested.body.event_id);
    assert.equal((await ask(core, signers.alice, id, 'pause')).body.status, 'paused');
    for (let n = 3; n < 6; n++) await core.send(signers.bob, post(n));
    assert.equal((await ask(core, signers.alice, id, 'test')).body.code, 'WEBHOOK_NOT_ACTIVE');
    assert.equal(receiver.received.length, 9, 'nothing while it is paused');
    await ask(core, signers.alice, id, 'resume');
    await receiver.waitFor((all) => all.length === 12);
    await ask(core, signers.alice, id, 'pause');
    await core.send(signers.bob, post(6));
    await ask(core, signers.alice, id, 'resume', { missed: 'skip' });
    await core.send(signers.bob, post(7));
    await receiver.waitFor((all) => all.length === 13);
    assert.equal(JSON.parse(receiver.received[12]!.body).data.cursor, '8');
    assert.equal((await ask(core, signers.alice, id, 'delete')).body.status, 'deleted');
    assert.equal((await ask(core, signers.alice, id, 'show')).body.code, 'WEBHOOK_NOT_FOUND');
  });

  test('what was missed is skipped to the end of the log, also where nobody has planned it yet', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using receiver = await startReceiver();
    const id = await register(core, signers.alice, { url: receiver.url });
    const other = await register(core, signers.alice, { url: `${receiver.url}/other` });
    for (let n = 0; n < 10; n++) assert.equal((await ask(core, signers.alice, other, 'test')).status, 200);
    const many = await ask(core, signers.alice, other, 'test');
    assert.deepEqual([many.status, many.body.code], [503, 'OVERLOADED'], 'nobody has delivered one');
    await ask(core, signers.alice, other, 'delete');
    await ask(core, signers.alice, id, 'pause');
    await core.send(signers.bob, post(1));
    await ask(core, signers.alice, id, 'resume', { missed: 'skip' });
    await using _deliverer = deliverFor(core);
    await core.send(signers.bob, post(2));
    await receiver.waitFor((all) => all.length > 0);
    assert.equal(JSON.parse(receiver.received[0]!.body).data.cursor, '2');
  });

  test('Retry-After holds the endpoint; a long failure pauses it and says why; what waits too long is dead', async () => {
    let nowMs = Date.now();
    await using core = await createTestCore({ webhooks: LOCAL, now: () => nowMs });
    await using receiver = await startReceiver();
    const id = await register(core, signers.alice, { url: receiver.url });
    const log = createLogger('test', 'silent');
    {
      await using _deliverer = deliverFor(core);
      receiver.answer = answerWith(429, { 'retry-after': '7200' });
      await core.send(signers.bob, post(1));
      await receiver.waitFor((all) => all.length === 1);
      const { body } = await until(
        'the attempt is noted',
        () => ask(core, signers.alice, id, 'deliveries'),
        (told) => told.body.deliveries[0]?.attempts === 1,
      );
      assert.ok(body.deliveries[0].next_attempt_ms >= nowMs + 2 * HOUR_MS);
      assert.equal(body.deliveries[0].log[0].code, 'WEBHOOK_ANSWER_REFUSED');
    }
    nowMs += 97 * HOUR_MS;
    await tidyWebhooks({ db: core.rooms.db, log }, nowMs);
    const shown = await core.send(
      signers.alice,
      {
        type: 'WEBHOOK',
        timestamp: Math.floor(nowMs / 1000),
        content: { action: 'show', webhook_id: id },
      },
      `/webhooks/${id}/show`,
    );
    assert.deepEqual(
      [shown.body.status, shown.body.reason.code, shown.body.waiting],
      ['paused', 'WEBHOOK_FAILING', 1],
    );
    const many = Array.from({ length: NOTES_MAX }, () => ({ code: 'WEBHOOK_ANSWER_REFUSED' }));
    await sql`update webhook_deliveries set log = ${JSON.stringify(many)}::jsonb`.execute(core.rooms.db);
    await tidyWebhooks({ db: core.rooms.db, log }, nowMs + 31 * 24 * HOUR_MS);
    const dead = await core.rooms.db.selectFrom('webhook_deliveries').selectAll().execute();
    assert.deepEqual(
      dead.map((one) => [one.state, one.log.length, one.log.at(-1)?.code]),
      [['dead', NOTES_MAX, 'WEBHOOK_NOT_ACTIVE']],
    );
  });

  test('a backlog that is full waits in the log, and comes when there is room', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using receiver = await startReceiver();
    const id = await register(core, signers.alice, { url: receiver.url });
    const { number } = await core.rooms.db.selectFrom('webhooks').select('number').executeTakeFirstOrThrow();
    await stopWebhook(core.rooms.db, number, 'paused', 'WEBHOOK_NOT_ACTIVE', Date.now());
    for (let n = 0; n < 30; n++) await core.send(signers.bob, post(n));
    await ask(core, signers.alice, id, 'resume');
    await using _deliverer = deliverFor(core, { backlogMax: 5 });
    await receiver.waitFor((all) => all.length === 30);
    assert.equal(new Set(receiver.received.map((one) => one.id)).size, 30);
  });

  test('a list goes on behind a cursor that a page has given, and behind no other', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    for (let n = 0; n < 3; n++) await register(core, signers.alice, { url: `http://127.0.0.1:${n + 1}/` });
    const list = (content: object) =>
      core.send(
        signers.alice,
        { type: 'WEBHOOK', content: { action: 'list', ...content } },
        '/webhooks/list',
      );
    const first = (await list({ limit: 2 })).body;
    const second = (await list({ limit: 2, cursor: first.next_cursor })).body;
    const urls = [...first.webhooks, ...second.webhooks].map(({ url }) => url);
    assert.deepEqual([new Set(urls).size, second.next_cursor], [3, null]);
    for (const cursor of ['x', '9'.repeat(15), `-${'9'.repeat(15)}`, String(2 ** 31)]) {
      const { status, body } = await list({ cursor });
      assert.deepEqual([status, body.code], [400, 'INVALID_CURSOR'], cursor);
    }
  });

  test('the secret is nowhere: answers, lists, events, metrics, the database, the log', async () => {
    const lines: string[] = [];
    const log = recordLog(lines);
    await using core = await createTestCore({ webhooks: LOCAL });
    await using _deliverer = startDeliverer({ ...core.rooms, log });
    await using receiver = await startReceiver();
    receiver.answer = answerWith(500);
    const secrets = ['first-secret-x1x1', 'second-secret-y2y2'];
    const id = await register(core, signers.alice, { url: receiver.url, secret: secrets[0] });
    const surfaces: unknown[] = [];
    await core.send(signers.bob, post(1));
    await receiver.waitFor((all) => all.length === 1);
    surfaces.push(await ask(core, signers.alice, id, 'rotate', { secret: secrets[1] }));
    for (const action of ['show', 'test', 'deliveries', 'pause', 'resume'])
      surfaces.push(await ask(core, signers.alice, id, action));
    surfaces.push(await ask(core, signers.alice, id, 'rotate', { secret: [secrets[1]] }));
    surfaces.push(await core.post('/webhooks', JSON.stringify({ secret: secrets[1] })));
    surfaces.push(
      await core.send(signers.alice, { type: 'WEBHOOK', content: { action: 'list' } }, '/webhooks/list'),
    );
    for (const path of [
      '/messages',
      '/messages.json',
      `/messages/${id}`,
      `/messages/${id}/status`,
      '/posts.json',
      '/aggregates',
      '/events?cursor=0&limit=100',
      '/state/digest',
      '/info/public.json',
      '/health',
      '/openapi.json',
    ])
      surfaces.push((await core.get(path)).body);
    for (const path of ['/metrics', '/metrics.json'])
      surfaces.push((await core.api.inject({ url: path })).payload);
    await receiver.waitFor((all) => all.length >= 2);
    surfaces.push(receiver.received);
    for (const table of ['messages', 'events', 'webhooks', 'webhook_deliveries', 'webhook_requests'] as const)
      surfaces.push(await core.rooms.db.selectFrom(table).selectAll().execute());
    const text = [
      JSON.stringify(surfaces, (_key, value) =>
        value?.type === 'Buffer' ? Buffer.from(value.data).toString('latin1') : value,
      ),
      ...lines,
    ].join('\n');
    assert.ok(text.includes(id), 'what is looked through has the webhook');
    for (const secret of secrets)
      for (const form of [
        secret,
        Buffer.from(secret).toString('base64').slice(0, -4),
        Buffer.from(secret).toString('hex'),
      ])
        assert.ok(!text.includes(form), `${form} is to be seen`);
  });

  test('a list of deliveries of one state is no burden for long, however many there are', async () => {
    await using core = await createTestCore();
    const { db } = core.rooms;
    const row = { number: 1, webhook_id: 'any' } as WebhookRow;
    await db.transaction().execute(async (trx) => {
      // As much as to be read for longer than a list may take.
      await sql`lock table webhook_deliveries in access exclusive mode`.execute(trx);
      const asked = listDeliveries(db, row, { state: 'dead', limit: 10, before: undefined });
      await assert.rejects(asked, { code: 'LIST_TOO_COSTLY' });
    });
  });
});
