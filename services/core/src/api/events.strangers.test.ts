import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { watchEvents } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import type { MessageEventData } from '@skerry/protocol';
import { sql } from 'kysely';
import type { PoolClient } from 'pg';
import { createTestCore, signers, type TestCore, type TestCoreOptions } from '../testing/core.ts';
import { limitsExcept } from '../testing/strangers.ts';

const ROUNDS = 20;
const READERS = 60;
/** How long messages are counted at least. Readers that read nothing are there for about as long. */
const WINDOW_MS = 700;
const EVENTS = 60_000;
const OWN = '127.0.0.9';
const limits = (core: TestCore) => core.rooms.settings.limits;

/** A core node to which every loopback address but one is a stranger's. */
async function createCore(settings: NonNullable<TestCoreOptions['settings']>): Promise<TestCore> {
  const core = await createTestCore({
    settings: {
      limits: limitsExcept(OWN),
      ...settings,
    },
  });
  assert.deepEqual(limits(core).exempt, [OWN]);
  return core;
}

interface Opened {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

/** Opens the stream from one of this machine's addresses; reads nothing of it. */
async function open(url: string, localAddress: string): Promise<Opened> {
  const asked = request(url, { localAddress, agent: false, headers: { accept: 'text/event-stream' } });
  asked.on('error', () => {});
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  return { request: asked, response };
}

const bodyOf = async (response: IncomingMessage) => {
  let text = '';
  for await (const chunk of response) text += chunk;
  return text;
};

/** Events straight into the log, as many as would take the pipeline minutes. */
async function fill(core: TestCore, count: number): Promise<void> {
  const data = JSON.stringify({
    item_hash: 'f'.repeat(64),
    type: 'POST',
    sender: signers.alice.address,
    channel: 'x'.repeat(100),
    timestamp: 1,
    content_type: null,
  } satisfies MessageEventData);
  await sql`insert into events (seq, kind, data, time_ms)
    select n, 'message', ${data}::jsonb, 1 from generate_series(1, ${count}::int) as n`.execute(
    core.rooms.db,
  );
  await sql`update event_counter set last_seq = ${count}`.execute(core.rooms.db);
}

const note = (core: TestCore, n: number) =>
  core.send(signers.alice, { type: 'POST', channel: 'stream', content: { type: 'note', content: n } });

describe('event streams of strangers', () => {
  test('M8: one client has its share, all strangers have theirs, and own services always find a place', async () => {
    await using core = await createCore({ maxStreams: 8, streamReserve: 3, streamsPerClient: 2 });
    const url = `${await core.listen()}/api/v0/events`;
    const held: Opened[] = [];
    for (let n = 0; n < 2; n++) held.push(await open(url, '127.0.0.2'));
    const refused = await open(url, '127.0.0.2');
    assert.equal(refused.response.statusCode, 429);
    assert.equal(refused.response.headers['retry-after'], '10');
    assert.match(await bodyOf(refused.response), /RATE_LIMITED/);
    for (const address of ['127.0.0.3', '127.0.0.4', '127.0.0.5']) held.push(await open(url, address));
    const again = await open(url, '127.0.0.3');
    assert.equal(again.response.statusCode, 503, 'it has one');
    held.push(await open(url, '127.0.0.6'));
    assert.match(await bodyOf(held[0]!.response), /: closed: a client that has no stream takes its place;/);
    const late = await open(url, '127.0.0.7');
    assert.equal(late.response.statusCode, 503, 'each has one, and the rest is kept for own services');
    for (let n = 0; n < 3; n++) held.push(await open(url, OWN));
    assert.ok(held.every(({ response }) => response.statusCode === 200));
    assert.match(await core.rooms.metrics.text(), /^skerry_event_streams_let_go_total 1$/m);
    held[1]!.request.destroy();
    await until(
      'the place is free again',
      async () => {
        const another = await open(url, '127.0.0.2');
        held.push(another);
        return another.response.statusCode;
      },
      (status) => status === 200,
    );
    for (const one of held) one.request.destroy();
  });

  test('M8: who leaves before the stream begins has no place in it', async ({ mock }) => {
    await using core = await createCore({ maxStreams: 8, streamReserve: 3, streamsPerClient: 1 });
    const url = `${await core.listen()}/api/v0/events`;
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { pool } = core.rooms.answering;
    const connect = pool.connect.bind(pool) as () => Promise<PoolClient>;
    const asked = mock.method(pool, 'connect', async () => {
      begun.resolve();
      await ended.promise;
      return connect();
    });
    const hasty = request(`${url}?cursor=latest`, {
      localAddress: '127.0.0.2',
      headers: { accept: 'text/event-stream' },
    });
    hasty.on('error', () => {}).end();
    await begun.promise;
    hasty.destroy();
    const countOpen = () =>
      new Promise<number>((resolve, reject) =>
        core.api.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      );
    await until('the node has closed it', countOpen, (count) => count === 0);
    asked.mock.restore();
    ended.resolve();
    const { request: later, response } = await open(url, '127.0.0.2');
    assert.equal(response.statusCode, 200);
    later.destroy();
  });

  describe('of which nothing is read', () => {
    let core: TestCore;
    let url: string;
    before(async () => {
      core = await createCore({ maxStreams: 200, streamsPerClient: 100, streamStallMs: WINDOW_MS });
      url = `${await core.listen()}/api/v0/events`;
      await fill(core, EVENTS);
    });
    after(() => core[Symbol.asyncDispose]());

    test('F4: a reader that does not read is let go, is told why, and goes on at its cursor', async () => {
      const { response } = await open(`${url}?cursor=0`, '127.0.0.2');
      const metrics = await until(
        'it is let go',
        () => core.rooms.metrics.text(),
        (text) => /let_go_total 1\n/.test(text),
      );
      assert.match(metrics, /skerry_event_streams_open 0\n/);
      const text = await bodyOf(response);
      assert.match(text, /\n\n: closed: nothing was read for 700 ms; connect again .*\n\n$/);
      const last = Number([...text.matchAll(/^id: ([0-9]+)$/gm)].at(-1)![1]);
      assert.ok(last < EVENTS, 'the log was not copied into memory for it');
      const stop = new AbortController();
      for await (const event of watchEvents(new URL(url).origin, {
        cursor: String(last),
        signal: stop.signal,
      })) {
        assert.equal(event.cursor, String(last + 1));
        stop.abort();
      }
    });

    test('F4: 60 readers from the beginning of whom none reads do not slow who writes', async () => {
      const counts: string[] = [];
      // Others on the machine may slow one round; readers would slow them all.
      for (let round = 0; round < ROUNDS; round++) {
        await until(
          'the places of the last round are free',
          () => core.rooms.metrics.text(),
          (text) => /skerry_event_streams_open 0\n/.test(text),
        );
        const quiet = await measureRate(core);
        let begun = 0;
        const opening = Array.from({ length: READERS }, () =>
          open(`${url}?cursor=0`, '127.0.0.2').finally(() => begun++),
        );
        // However long a busy machine takes to let them in.
        const beside = await measureRate(core, () => begun === READERS);
        const readers = await Promise.all(opening);
        for (const { request: asked } of readers) asked.destroy();
        const refused = readers.map(({ response }) => response.statusCode).filter((code) => code !== 200);
        assert.deepEqual(refused, []);
        if (beside > quiet / 3) return;
        counts.push(`${beside.toFixed(1)} messages a second beside them, ${quiet.toFixed(1)} without`);
      }
      assert.fail(counts.join('; '));
    });
  });
});

let sent = 0;
/** How many messages a second one writer sends, one after the other, for a while and until something has happened. */
async function measureRate(core: TestCore, hasHappened = () => true): Promise<number> {
  const [before, startMs] = [sent, performance.now()];
  while (performance.now() < startMs + WINDOW_MS || !hasHappened())
    assert.equal((await note(core, ++sent)).status, 200);
  return ((sent - before) * 1_000) / (performance.now() - startMs);
}
