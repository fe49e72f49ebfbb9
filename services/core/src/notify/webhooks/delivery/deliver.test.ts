import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sql } from 'kysely';
import { Webhook } from 'standardwebhooks';
import type { Schema } from '../../../store/schema.ts';
import { createTestCore, instanceContent, MIGRATIONS, signers } from '../../../testing/core.ts';
import {
  answerWith,
  ask,
  deliverFor,
  LOCAL,
  note,
  type Received,
  register,
  SECRET,
  startReceiver,
} from '../testing/setup.ts';
import { AgeClock, bringForward, createUpkeep, tidyWebhooks } from './upkeep.ts';

const post = (n: number | string, channel = 'notes') => ({
  type: 'POST',
  channel,
  content: { type: 'note', content: { n } },
});

test('a clock makes nothing old at once: it is believed when it stayed ahead for a day', () => {
  const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];
  const startMs = 20_000 * DAY_MS;
  let [uptimeMs, offMs] = [7, 0];
  const clock = new AgeClock(
    () => startMs + uptimeMs + offMs,
    () => uptimeMs,
  );
  const aheadAfter = (ms: number, nextOffMs: number) => {
    [uptimeMs, offMs] = [uptimeMs + ms, nextOffMs];
    return clock.look().agedMs - startMs - uptimeMs;
  };
  assert.equal(aheadAfter(HOUR_MS, 0), 0);
  assert.equal(aheadAfter(HOUR_MS, 10 * DAY_MS), 0, 'set ahead');
  assert.equal(aheadAfter(23 * HOUR_MS, 12 * DAY_MS), 0);
  assert.equal(aheadAfter(HOUR_MS, 0), 0, 'set right');
  assert.equal(aheadAfter(HOUR_MS, -DAY_MS), -DAY_MS, 'set back');
  assert.equal(aheadAfter(HOUR_MS, 0), -DAY_MS);
  assert.equal(aheadAfter(24 * HOUR_MS, 0), 0);
  assert.equal(aheadAfter(HOUR_MS, HOUR_MS), 0, 'a little ahead');
  assert.equal(aheadAfter(23 * HOUR_MS, 20 * DAY_MS), 0, 'then far ahead');
  assert.equal(aheadAfter(HOUR_MS, 20 * DAY_MS), HOUR_MS, 'the least of a day');
  assert.equal(aheadAfter(23 * HOUR_MS, 20 * DAY_MS), HOUR_MS);
  assert.equal(aheadAfter(HOUR_MS, 20 * DAY_MS), 20 * DAY_MS);
  assert.equal(aheadAfter(0, 20 * DAY_MS + HOUR_MS), 20 * DAY_MS, 'what was believed counts for nothing new');
});

test('a process that starts under a clock that is ahead forgets nothing until that was so for a day', async () => {
  const log = createLogger('test', 'silent');
  const [startMs, dayMs] = [Date.now(), 86_400_000];
  await using database = await createTestDatabase<Schema>({ log, migrations: MIGRATIONS });
  const { kysely: db } = database;
  await sql`insert into webhook_deliveries (webhook, seq, event, state, due_ms, planned_ms, settled_ms)
    values (1, 1, 'message.new', 'delivered', ${startMs}, ${startMs}, ${startMs})`.execute(db);
  let [uptimeMs, aheadMs] = [0, 0];
  const start = () =>
    createUpkeep({ db, log, now: () => startMs + uptimeMs + aheadMs, uptime: () => uptimeMs });
  const isLogged = async (upkeep: () => Promise<void>) => {
    await upkeep();
    return (await db.selectFrom('webhook_deliveries').select('seq').execute()).length === 1;
  };
  assert.ok(await isLogged(start()));
  uptimeMs += 60_000;
  const second = start();
  assert.ok(await isLogged(second), 'what a start takes is ahead, too');
  uptimeMs += dayMs - 60_000;
  aheadMs = 20 * dayMs;
  const third = start();
  for (const upkeep of [second, third]) assert.ok(await isLogged(upkeep));
  uptimeMs += 60_000;
  assert.ok(await isLogged(third), 'what the start took is believed, and no more');
  uptimeMs += dayMs - 1;
  const fourth = start();
  for (const upkeep of [third, fourth]) assert.ok(await isLogged(upkeep));
  uptimeMs += 1;
  assert.ok(!(await isLogged(fourth)));
});

describe('deliveries', () => {
  test('a receiver of the standardwebhooks library accepts them: base64 and raw secrets', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using _deliverer = deliverFor(core);
    await using receiver = await startReceiver();
    const raw = 'a secret of words';
    await register(core, signers.alice, { url: `${receiver.url}/a` });
    await register(core, signers.alice, { url: `${receiver.url}/b`, secret: raw });
    const { body } = await core.send(signers.bob, post(1));
    await receiver.waitFor((all) => all.length === 2);
    for (const { path, headers, body: text } of receiver.received) {
      const library = path === '/a' ? new Webhook(SECRET) : new Webhook(raw, { format: 'raw' });
      const payload = library.verify(text, headers as Record<string, string>) as {
        type: string;
        data: { item_hash: string; cursor: string };
      };
      assert.equal(payload.type, 'message.new');
      assert.equal(payload.data.item_hash, body.item_hash);
      assert.throws(() => library.verify(`${text} `, headers as Record<string, string>));
      assert.match(String(headers['user-agent']), /^Skerry-Webhooks\//);
    }
    const [a, b] = receiver.received;
    assert.notEqual(a!.id, b!.id);
  });

  test('filters: type, channel, sender, tags', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using _deliverer = deliverFor(core);
    await using receiver = await startReceiver();
    const filters = {
      all: undefined,
      channel: { channels: ['news', 'notes'] },
      sender: { senders: [signers.bob.address.toUpperCase().replace('0X', '0x')] },
      both: { senders: [signers.bob.address], channels: ['other'] },
      tag: { tags: ['red', 'green'] },
      type: { types: ['AGGREGATE'] },
    };
    for (const [name, one] of Object.entries(filters))
      await register(core, signers.alice, {
        url: `${receiver.url}/${name}`,
        concurrency: 1,
        ...(one ? { filters: one } : {}),
      });
    const green = (channel: string) => ({
      type: 'POST',
      channel,
      content: { type: 'note', content: { tags: ['green'] }, tags: ['green'] },
    });
    const profile = { type: 'AGGREGATE', channel: 'other', content: { key: 'profile', content: { a: 1 } } };
    const sent: string[] = [];
    for (const [signer, draft] of [
      [signers.bob, post(1, 'notes')],
      [signers.alice, green('other')],
      [signers.alice, profile],
      // One of these is the last for each: what comes one at a time has come when they have.
      [signers.bob, profile],
      [signers.alice, green('notes')],
    ] as const)
      sent.push((await core.send(signer, draft)).body.item_hash);
    const told = {
      all: [0, 1, 2, 3, 4],
      channel: [0, 4],
      sender: [0, 3],
      both: [3],
      tag: [1, 4],
      type: [2, 3],
    };
    const read = (name: string) =>
      receiver.received
        .filter(({ path }) => path === `/${name}`)
        .map(({ body }) => sent.indexOf(JSON.parse(body).data.item_hash));
    await receiver.waitFor(() =>
      Object.entries(told).every(([name, messages]) => read(name).includes(messages.at(-1)!)),
    );
    assert.deepEqual(Object.fromEntries(Object.keys(filters).map((name) => [name, read(name)])), told);
  });

  test('instance.status tells of changes of phase and status, and of nothing else', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using _deliverer = deliverFor(core);
    await using receiver = await startReceiver();
    const events = ['instance.status', 'message.new'];
    await register(core, signers.alice, { url: receiver.url, events, concurrency: 1 });
    const made = await core.send(signers.alice, { type: 'INSTANCE', content: instanceContent }, '/instances');
    const id = made.body.item_hash;
    const update = { type: 'INSTANCE_UPDATE', content: { instance_id: id, name: 'other' } };
    await core.send(signers.alice, update, `/instances/${id}`, 'PUT');
    // They come one at a time: with the last one, nothing of the update is still to come.
    const last = await core.send(signers.bob, post('last'));
    const read = () => receiver.received.map(({ body }) => JSON.parse(body));
    await receiver.waitFor(() => read().some(({ data }) => data.item_hash === last.body.item_hash));
    const told = read();
    assert.deepEqual(
      told.map(({ type }) => type),
      ['message.new', 'instance.status', 'message.new', 'message.new'],
    );
    const { data } = told[1]!;
    assert.deepEqual([data.instance_id, data.previous_phase], [id, null]);
  });

  test('a failed delivery comes again with the same id and a new time; 410 disables; a resume is possible', async () => {
    const startMs = Date.now();
    // Nothing is due before the test says so; from then on time goes on, as those who rest for a while need it.
    let stillMs: number | undefined = startMs;
    let aheadMs = 0;
    await using core = await createTestCore({ webhooks: LOCAL, now: () => stillMs ?? Date.now() + aheadMs });
    await using _deliverer = deliverFor(core);
    await using receiver = await startReceiver();
    receiver.answer = answerWith(500);
    const id = await register(core, signers.alice, { url: receiver.url });
    await core.send(signers.bob, post(1));
    await receiver.waitFor((all) => all.length === 1);
    const { body: waiting } = await until(
      'the first attempt is noted',
      () => ask(core, signers.alice, id, 'deliveries'),
      ({ body }) => body.deliveries[0]?.attempts === 1,
    );
    const [first] = receiver.received;
    const nextMs = waiting.deliveries[0].next_attempt_ms;
    assert.ok(nextMs >= startMs + 5_000, 'the first pause is five seconds');
    receiver.answer = answerWith(204);
    aheadMs = nextMs - Date.now();
    stillMs = undefined;
    await receiver.waitFor((all) => all.length === 2);
    const second = receiver.received[1];
    assert.equal(first!.id, second!.id);
    assert.equal(first!.body, second!.body);
    const timeOf = ({ headers }: Received) => Number(headers['webhook-timestamp']);
    assert.ok(timeOf(second!) >= Math.floor(nextMs / 1000) && timeOf(second!) > timeOf(first!));
    receiver.answer = answerWith(410);
    await core.send(signers.bob, post(2));
    await receiver.waitFor((all) => all.length === 3);
    const { body: gone } = await until(
      'it is not active any more',
      () => ask(core, signers.alice, id, 'show'),
      ({ body }) => body.status !== 'active',
    );
    assert.deepEqual([gone.status, gone.reason.code], ['disabled', 'WEBHOOK_GONE']);
    receiver.answer = answerWith(200);
    await core.send(signers.bob, post(3));
    assert.equal((await ask(core, signers.alice, id, 'resume')).body.status, 'active');
    await receiver.waitFor((all) => all.length === 4);
    assert.equal(JSON.parse(receiver.received[3]!.body).data.cursor, '3', 'what was missed is delivered');
    assert.equal(receiver.received.length, 4);
    receiver.answer = answerWith(500);
    await core.send(signers.bob, post(4));
    const failed = async (attempts: number) => {
      const { body } = await until(
        `attempt ${attempts} is noted`,
        () => ask(core, signers.alice, id, 'deliveries', { state: 'waiting' }),
        ({ body }) => body.deliveries[0]?.attempts === attempts,
      );
      return body.deliveries[0];
    };
    aheadMs += (await failed(1)).next_attempt_ms - (Date.now() + aheadMs);
    const last = await failed(2);
    assert.ok(last.next_attempt_ms > Date.now() + aheadMs + 240_000, 'the second pause is five minutes');
    receiver.answer = answerWith(204);
    const replayed = await ask(core, signers.alice, id, 'replay', { event_id: last.event_id });
    assert.deepEqual([replayed.body.from_cursor, replayed.body.to_cursor], [last.cursor, last.cursor]);
    await receiver.waitFor((all) => all.length === 7);
    assert.equal(receiver.received[6]!.id, last.event_id, 'it waits no longer');
  });

  test('what another process left is found by one whose clock was set back', async () => {
    let nowMs = Date.now();
    await using core = await createTestCore({ webhooks: LOCAL, now: () => nowMs });
    const { db } = core.rooms;
    await using receiver = await startReceiver();
    await using _deliverer = deliverFor(core);
    await register(core, signers.alice, { url: receiver.url });
    await core.send(signers.bob, post(1));
    await until('it is delivered', async () => {
      const states = await db.selectFrom('webhook_deliveries').select('state').execute();
      return states[0]?.state === 'delivered';
    });
    nowMs -= 3_600_000;
    await db
      .updateTable('webhook_deliveries')
      .set({ state: 'waiting', due_ms: 0, settled_ms: null })
      .execute();
    await until('it is delivered again', () => receiver.received.length === 2);
  });

  test('one attempt that failed while the clock was ahead silences no endpoint until that date', async () => {
    const aheadMs = 10 * 86_400_000;
    let nowMs = Date.now();
    await using core = await createTestCore({ webhooks: LOCAL, now: () => nowMs });
    const { db } = core.rooms;
    await using receiver = await startReceiver();
    receiver.answer = answerWith(429, { 'retry-after': '1' });
    await using _deliverer = deliverFor(core);
    await register(core, signers.alice, { url: receiver.url });
    nowMs += aheadMs;
    await core.send(signers.bob, post(1));
    await until('it is put off', async () => {
      const rows = await db.selectFrom('webhook_deliveries').select('attempts').execute();
      return rows[0]?.attempts === 1;
    });
    nowMs -= aheadMs;
    receiver.answer = answerWith(204);
    await tidyWebhooks({ db, log: createLogger('test', 'silent') }, nowMs);
    await until('it comes again', () => receiver.received.length === 2);
    // What waits in time is not read for it.
    await sql`insert into webhooks (webhook_id, owner, url, events, secret, created, status)
      values ('full', 'owner', 'https://example.org/', '{}', '', 0, 'paused')`.execute(db);
    await sql`insert into webhook_deliveries (webhook, seq, event, due_ms, planned_ms)
      select number, seq, 'message.new', ${nowMs}, ${nowMs} from webhooks, generate_series(1, 20000) seq
      where webhook_id = 'full'`.execute(db);
    await sql`analyze webhooks, webhook_deliveries`.execute(db);
    await db.transaction().execute(async (trx) => {
      const countPages = async () => {
        const { rows } = await sql<{
          pages: number;
        }>`select sum(pg_stat_get_xact_blocks_fetched(of))::int as pages
          from unnest('{webhook_deliveries,webhook_deliveries_due}'::regclass[]) of`.execute(trx);
        return rows[0]!.pages;
      };
      const before = await countPages();
      await bringForward(trx, nowMs);
      const pages = (await countPages()) - before;
      assert.ok(pages < 20, `${pages} pages are read`);
    });
  });

  test('what an endpoint has no time for before its lease ends comes next, in the order of events', async () => {
    let nowMs = Date.now();
    await using core = await createTestCore({ webhooks: LOCAL, now: () => nowMs });
    await using receiver = await startReceiver();
    await using _deliverer = deliverFor(core);
    const held: (() => void)[] = [];
    receiver.answer = (response) => void held.push(() => response.writeHead(204).end());
    await register(core, signers.alice, { url: receiver.url, concurrency: 1 });
    await core.send(signers.bob, post(1));
    await receiver.waitFor((all) => all.length === 1);
    const planned = async (count: number) =>
      until('all are planned', async () => {
        const rows = await core.rooms.db.selectFrom('webhook_deliveries').select('seq').execute();
        return rows.length === count;
      });
    for (let n = 2; n <= 9; n++) await core.send(signers.bob, post(n));
    await planned(9);
    nowMs += LOCAL.timeoutMs! + 1;
    await core.send(signers.bob, post(10));
    await planned(10);
    receiver.answer = answerWith(204);
    held[0]!();
    await until('all are delivered', () => receiver.received.length === 10);
    const cursors = receiver.received.map(({ body }) => Number(JSON.parse(body).data.cursor));
    assert.deepEqual(
      cursors,
      cursors.toSorted((a, b) => a - b),
    );
  });

  test('one at a time: in the order of events', async () => {
    await using core = await createTestCore({ webhooks: LOCAL });
    await using _deliverer = deliverFor(core);
    await using receiver = await startReceiver();
    let open = 0;
    let most = 0;
    receiver.answer = (response) => {
      most = Math.max(most, ++open);
      setImmediate(() => {
        open--;
        response.writeHead(204).end();
      });
    };
    const id = await register(core, signers.alice, { url: receiver.url, concurrency: 1 });
    const bodies = Array.from({ length: 200 }, (_, n) => note(signers.bob, n).body);
    await Promise.all(bodies.map((body) => core.post('/messages', body)));
    await receiver.waitFor((all) => all.length === 200);
    const cursors = () => receiver.received.map(({ body }) => Number(JSON.parse(body).data.cursor));
    const inOrder = cursors().toSorted((a, b) => a - b);
    assert.deepEqual(cursors(), inOrder);
    const { db } = core.rooms;
    await until('all are settled', async () => {
      const states = await db.selectFrom('webhook_deliveries').select('state').execute();
      return states.every(({ state }) => state === 'delivered');
    });
    // As if each had failed, the later ones less often.
    await sql`
      update webhook_deliveries set state = 'waiting', attempts = 3, due_ms = ${Date.now()}::bigint + 1000000 - seq * 1000`.execute(
      db,
    );
    await ask(core, signers.alice, id, 'replay', { since_ms: 0 });
    await receiver.waitFor((all) => all.length === 400);
    assert.deepEqual(cursors().slice(200), inOrder, 'a replay of what waits for retries');
    assert.equal(most, 1);
  });
});
