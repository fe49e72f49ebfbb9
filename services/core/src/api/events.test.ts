import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { watchEvents } from '@skerry/client';
import { listen } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { LIMITS, verifyShared } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

describe('the event stream', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore();
    url = `${await listen(core.api, '127.0.0.1', 0)}/api/v0/events`;
  });
  after(() => core[Symbol.asyncDispose]());

  const note = (n: number) =>
    core.send(signers.alice, { type: 'POST', channel: 'stream', content: { type: 'note', content: n } });

  test('gives what was and what comes, in order, each once; pages tell the same', async () => {
    const expected: string[] = [];
    for (let n = 0; n < 5; n++) expected.push((await note(n)).body.item_hash);
    const stop = new AbortController();
    const seen: string[] = [];
    for await (const event of watchEvents(new URL(url).origin, { cursor: '0', signal: stop.signal })) {
      assert.ok(event.kind === 'message');
      seen.push(event.data.item_hash);
      // Written while the stream is open, one by one and many at once.
      if (seen.length === 5)
        for (const sent of await Promise.all([note(5), note(6), note(7)])) expected.push(sent.body.item_hash);
      if (seen.length === 8) stop.abort();
    }
    assert.deepEqual(new Set(seen), new Set(expected));
    assert.deepEqual(seen.slice(0, 5), expected.slice(0, 5));
    const page = await core.get('/events?cursor=3&limit=2');
    assert.deepEqual(
      page.body.events.map((event: { data: { item_hash: string } }) => event.data.item_hash),
      seen.slice(3, 5),
    );
    assert.equal(page.body.next_cursor, '5');
    const rest = await core.get('/events?cursor=5&limit=100');
    assert.deepEqual(
      rest.body.events.map((event: { data: { item_hash: string } }) => event.data.item_hash),
      seen.slice(5),
    );
  });

  test('from now on: nothing of before, everything after', async () => {
    await note(0);
    const { events, next_cursor: now } = (await core.get('/events?cursor=latest')).body;
    assert.deepEqual(events, []);
    const stop = new AbortController();
    const headers = { accept: 'text/event-stream' };
    const stream = await fetch(`${url}?cursor=latest`, { headers, signal: stop.signal });
    const { value: greeting } = await stream.body!.getReader().read();
    stop.abort();
    assert.equal(Buffer.from(greeting!).toString(), `: skerry events\nid: ${now}\n\n`);
    const { item_hash: sent } = (await note(100)).body;
    const after = (await core.get(`/events?cursor=${now}`)).body.events;
    assert.deepEqual(
      after.map((event: { data: { item_hash: string } }) => event.data.item_hash),
      [sent],
    );
  });

  test('only some kinds: a page and a stream leave the others out, however many there are', async () => {
    const { next_cursor: start } = (await core.get('/events?cursor=latest')).body;
    const [first, second] = [(await note(200)).body.item_hash, (await note(201)).body.item_hash];
    await core.send(signers.alice, { type: 'FORGET', channel: 'stream', content: { hashes: [first] } });
    const removed = (await core.get(`/events?cursor=${start}&kinds=message_removed`)).body;
    assert.deepEqual(
      removed.events.map((event: { data: object }) => event.data),
      [{ item_hash: first, status: 'forgotten', reason: removed.events[0].data.reason }],
    );
    const { next_cursor: end } = (await core.get('/events?cursor=latest')).body;
    assert.equal(removed.next_cursor, end, 'what was looked at is not looked at again');
    const paged = (await core.get(`/events?cursor=${start}&kinds=message&limit=1`)).body;
    assert.equal(paged.events[0].data.item_hash, first);
    assert.equal(paged.next_cursor, paged.events[0].cursor);

    // More than is looked through for one page, and more than one page of the stream.
    const last = Number(end) + 12_000;
    await sql`insert into events (seq, kind, data, time_ms) select n, 'instance_removed',
      ${JSON.stringify({ instance_id: 'f'.repeat(64) })}::jsonb, 1
      from generate_series(${Number(end) + 1}::int, ${last}::int) as n`.execute(core.rooms.db);
    await sql`update event_counter set last_seq = ${last}`.execute(core.rooms.db);
    const scanned = (await core.get(`/events?cursor=${end}&kinds=message`)).body;
    assert.deepEqual(scanned, { events: [], next_cursor: String(Number(end) + 10_000) });
    const third = (await note(202)).body.item_hash;
    const stop = new AbortController();
    const seen: string[] = [];
    const options = { cursor: start, kinds: ['message', 'message_removed'], signal: stop.signal } as const;
    for await (const event of watchEvents(new URL(url).origin, options)) {
      assert.ok(event.kind === 'message' || event.kind === 'message_removed', event.kind);
      seen.push(`${event.kind} ${event.data.item_hash}`);
      if (event.data.item_hash === third) stop.abort();
    }
    assert.deepEqual(
      seen.filter((one) => [first, second, third].some((hash) => one.endsWith(hash))),
      [`message ${first}`, `message ${second}`, `message_removed ${first}`, `message ${third}`],
    );
    for (const kinds of ['message,', 'instances', ''])
      assert.equal((await core.get(`/events?kinds=${kinds}`)).body.code, 'INVALID_PARAMETERS', kinds);
  });

  test('numbers that were passed over, as after a failover or a restore, keep nobody from the events behind them', async () => {
    const { next_cursor: start } = (await core.get('/events?cursor=latest')).body;
    await sql`update event_counter set last_seq = ${Date.now()}`.execute(core.rooms.db);
    const { item_hash: hash } = (await note(400)).body;
    const { events, next_cursor } = (await core.get(`/events?cursor=${start}&kinds=message`)).body;
    assert.deepEqual(
      events.map((event: { data: { item_hash: string } }) => event.data.item_hash),
      [hash],
    );
    const behind = (await core.get(`/events?cursor=${next_cursor}&kinds=message`)).body;
    assert.deepEqual(behind, { events: [], next_cursor });
    const none = (await core.get(`/events?cursor=${start}&kinds=instance`)).body;
    assert.deepEqual(none, { events: [], next_cursor });
  });

  test('bodies=shared: whoever reads can check each message without asking again', async () => {
    const { next_cursor: cursor } = (await core.get('/events?cursor=latest')).body;
    const { item_hash: short } = (await note(300)).body;
    const { item_hash: gone } = (await note(301)).body;
    const long = (
      await core.send(signers.bob, {
        type: 'POST',
        channel: 'stream',
        content: { type: 'note', content: 'x'.repeat(LIMITS.listedBodyBytes) },
      })
    ).body.item_hash;
    await core.send(signers.alice, { type: 'FORGET', channel: 'stream', content: { hashes: [gone] } });
    await sql`update messages set content = null, source_text = null where item_hash = ${gone}`.execute(
      core.rooms.db,
    );
    const page = (await core.get(`/events?cursor=${cursor}&kinds=message&bodies=shared`)).body.events;
    const stop = new AbortController();
    const streamed: unknown[] = [];
    const options = { cursor, kinds: ['message'], bodies: 'shared', signal: stop.signal } as const;
    for await (const event of watchEvents(new URL(url).origin, options)) {
      streamed.push(event);
      if (streamed.length === page.length) stop.abort();
    }
    assert.deepEqual(streamed, page);
    const bodies = new Map<string, string | null>(
      page.map((event: { data: { item_hash: string }; shared: string | null }) => [
        event.data.item_hash,
        event.shared,
      ]),
    );
    const proven = verifyShared(bodies.get(short)!, Date.now() / 1_000);
    assert.equal(proven.itemHash, short);
    assert.equal(proven.sender, signers.alice.address);
    assert.deepEqual(proven.content, { type: 'note', content: 300 });
    assert.throws(() => verifyShared(bodies.get(short)!.replace('300', '301'), Date.now() / 1_000), {
      code: 'INVALID_SIGNATURE',
    });
    assert.equal(bodies.get(gone), null, 'its text is gone');
    assert.equal(bodies.get(long), null, 'it is too long for a list');
    const plain = (await core.get(`/events?cursor=${cursor}&kinds=message`)).body.events;
    assert.ok(plain.every((event: object) => !('shared' in event)));
  });

  test('a reader whose connection breaks goes on at its cursor: nothing missing, nothing twice', async () => {
    const start = (await core.get('/instances')).body.cursor;
    const stop = new AbortController();
    const cursors: number[] = [];
    let disconnects = 0;
    await note(100);
    const watching = watchEvents(new URL(url).origin, {
      cursor: start,
      signal: stop.signal,
      onDisconnect: () => disconnects++,
    });
    for await (const event of watching) {
      cursors.push(Number(event.cursor));
      if (cursors.length === 6) stop.abort();
      else {
        if (cursors.length % 2 === 0) core.api.server.closeAllConnections();
        await note(100 + cursors.length);
      }
    }
    assert.deepEqual(
      cursors,
      Array.from({ length: 6 }, (_, i) => Number(start) + 1 + i),
    );
    assert.ok(disconnects >= 2);
  });

  test('a cursor that no event had yet is refused, but for numbers that another server gave', async () => {
    const last = Number((await core.get('/events?cursor=latest')).body.next_cursor);
    assert.equal((await core.get(`/events?cursor=${last}`)).status, 200);
    for (const [ahead, query] of [
      [1, ''],
      [1_000_000, '&kinds=message'],
    ] as const) {
      const { status, body } = await core.get(`/events?cursor=${last + ahead}${query}`);
      assert.deepEqual([status, body.code], [400, 'INVALID_CURSOR']);
    }
    const ahead = { cursor: String(last + 1), signal: new AbortController().signal };
    await assert.rejects(watchEvents(new URL(url).origin, ahead).next(), { code: 'INVALID_CURSOR' });
    // As after a failover, before anything is written: its first event has a number above all that were given.
    await sql`update event_counter set timeline = 'of another server'`.execute(core.rooms.db);
    assert.equal((await core.get(`/events?cursor=${last + 1}`)).status, 200);
    await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: {} } });
    assert.ok((await core.get(`/events?cursor=${last + 1}`)).body.events.length > 0);
  });

  test('HEAD tells what a stream is, at once, and takes no place of one', async () => {
    for (let n = 0; n < 6; n++) {
      const { status, headers } = await fetch(url, {
        method: 'HEAD',
        headers: { accept: 'text/event-stream' },
        signal: AbortSignal.timeout(20_000),
      });
      assert.deepEqual([status, headers.get('content-type')], [200, 'text/event-stream']);
    }
    assert.match(await core.rooms.metrics.text(), /^skerry_event_streams_open 0$/m);
  });

  test('bad cursors are refused, and too many streams', async () => {
    for (const cursor of ['x', '-1', '1.5', '', '9'.repeat(30)]) {
      assert.equal((await core.get(`/events?cursor=${cursor}`)).body.code, 'INVALID_CURSOR', cursor);
    }
    await assert.rejects(
      async () => {
        for await (const _event of watchEvents(new URL(url).origin, {
          cursor: 'x',
          signal: new AbortController().signal,
        }))
          assert.fail('no event fits');
      },
      { code: 'INVALID_CURSOR' },
    );
    await until(
      'the streams of earlier tests have ended',
      () => core.rooms.metrics.text(),
      (text) => /^skerry_event_streams_open 0$/m.test(text),
    );
    const stop = new AbortController();
    const open = await Promise.all(
      Array.from({ length: 4 }, () =>
        fetch(url, { headers: { accept: 'text/event-stream' }, signal: stop.signal }),
      ),
    );
    assert.ok(open.every((response) => response.status === 200));
    const refused = await fetch(url, { headers: { accept: 'text/event-stream' } });
    assert.equal(refused.status, 503);
    assert.equal(((await refused.json()) as { code: string }).code, 'OVERLOADED');
    stop.abort();
  });
});

test('a stream whose first events cannot be read is refused with a code, and takes no place', async () => {
  await using core = await createTestCore();
  const url = `${await core.listen()}/api/v0/events`;
  await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: 1 } });
  // That there is such a number is known without the database from now on.
  assert.equal((await core.get('/events')).body.next_cursor, '1');
  await core.loseDatabase();
  const answer = await fetch(`${url}?cursor=1`, { headers: { accept: 'text/event-stream' } });
  assert.deepEqual(
    [answer.status, ((await answer.json()) as { code: string }).code],
    [503, 'DATABASE_UNAVAILABLE'],
  );
  assert.match(await core.rooms.metrics.text(), /^skerry_event_streams_open 0$/m);
});
