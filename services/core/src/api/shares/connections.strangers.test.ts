import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import type { Pool, PoolClient } from 'pg';
import { CONNECTIONS } from '../../store/connections.ts';
import { createTestCore, signers } from '../../testing/core.ts';
import { TestSocket } from '../../testing/sockets.ts';
import { limitsExcept } from '../../testing/strangers.ts';

/** How lists and histories begin, and what pages for peers ask. */
const LONG = /set local jit|as is_envelope/;

/** Whoever asks what takes long keeps its connection until it is let go on. */
function holdLong(pool: Pool) {
  const end = Promise.withResolvers<void>();
  const held = { count: 0 };
  const watched = (client: PoolClient): PoolClient => {
    const query = async (text: string, values?: unknown[]) => {
      if (typeof text === 'string' && LONG.test(text)) {
        held.count++;
        await end.promise;
      }
      return client.query(text, values);
    };
    return Object.create(client, { query: { value: query } });
  };
  const connect: (callback?: () => void) => Promise<PoolClient> = Object.getPrototypeOf(pool).connect;
  const replaced = (callback?: () => void) =>
    callback ? connect.call(pool, callback) : connect.call(pool).then(watched);
  Object.assign(pool, { connect: replaced });
  return { held, [Symbol.dispose]: () => end.resolve() };
}

test('all lists, histories and pages that may be read at once leave connections for messages by hash, for writing and for health', async () => {
  await using core = await createTestCore({
    settings: { limits: limitsExcept('127.0.0.9') },
    connectionsMax: CONNECTIONS.all,
  });
  const url = await core.listen();
  const ask = async (localAddress: string, path: string, body?: Buffer): Promise<number> => {
    const headers = body ? { 'content-type': 'application/json', 'content-length': body.length } : {};
    const method = body ? 'POST' : 'GET';
    const asked = request(`${url}${path}`, { localAddress, agent: false, headers, method }).end(body);
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    await response.resume().toArray();
    return response.statusCode!;
  };
  const note = (n: number) =>
    signMessage({ type: 'POST', content: { type: 'note', content: n }, nonce: `${n}` }, signers.alice);
  const first = note(0);
  assert.equal(await ask('127.0.0.2', '/api/v0/messages', Buffer.from(first.body)), 200);
  using holding = holdLong(core.rooms.indexer.pool);
  const { held } = holding;
  const lists: Promise<unknown>[] = [];
  for (let n = 10; n < 30; n++) {
    const localAddress = `127.0.0.${n}`;
    lists.push(
      ask(localAddress, '/api/v0/posts.json'),
      ask(localAddress, '/api/v0/sync/messages'),
      TestSocket.open(`${url}/api/ws0/messages?history=9`, { localAddress }).then((socket) => socket.close()),
    );
  }
  // Of strangers, who leave one long list to our own.
  const most = CONNECTIONS.lists - 1 + CONNECTIONS.tries + CONNECTIONS.pages;
  await until(
    'as many as may are held',
    () => held.count,
    (count) => count === most,
  );
  for (let n = 0; n < 20; n++) {
    assert.equal(await ask('127.0.0.3', `/api/v0/messages/${first.itemHash}`), 200);
    assert.equal(await ask('127.0.0.4', '/api/v0/messages', Buffer.from(note(n + 1).body)), 200);
    assert.equal(await ask('127.0.0.5', '/health'), 200);
  }
  assert.equal(held.count, most);
  holding[Symbol.dispose]();
  await Promise.all(lists);
});

test('reads that take a millisecond, however many come at once, leave connections for writing and for health', async () => {
  await using core = await createTestCore({ connectionsMax: CONNECTIONS.all });
  const { pool } = core.rooms.indexer;
  const waiting = Array.from({ length: 100 }, () => core.rooms.answering.pool.connect());
  await using _given = {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(waiting.map(async (one) => (await one).release()));
    },
  };
  await Promise.all(waiting.slice(0, CONNECTIONS.answers));
  assert.equal(pool.totalCount - pool.idleCount, CONNECTIONS.answers);
  const sent = await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: 1 } });
  assert.equal(sent.status, 200);
  assert.notEqual((await core.rooms.health()).status, 'unavailable');
  const awaited = waiting.length - CONNECTIONS.answers;
  const text = await core.rooms.metrics.text();
  assert.match(text, new RegExp(`^skerry_database_connections\\{state="awaited"\\} ${awaited}$`, 'm'));
});

test('whatever takes long leaves connections for what takes a millisecond, and answers leave some for the node itself', () => {
  const { all, answers, lists, tries, pages, digests } = CONNECTIONS;
  assert.ok(lists + tries + pages + 2 * digests <= answers - 2);
  assert.ok(answers <= all - 4);
});
