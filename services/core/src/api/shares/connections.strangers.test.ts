import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import type { Pool, PoolClient } from 'pg';
import { adviseOnConnections, CONNECTIONS } from '../../store/connections.ts';
import { createTestCore, signers } from '../../testing/core.ts';
import { TestSocket } from '../../testing/sockets.ts';
import { limitsExcept } from '../../testing/strangers.ts';

/** How lists and histories begin, and what pages for peers ask. */
const LONG = /set local jit|as is_envelope/;

/** Whoever asks what takes long, or what is named, keeps its connection until it is let go on. */
function holdLong(pool: Pool, what = LONG) {
  const end = Promise.withResolvers<void>();
  const held = { count: 0 };
  const watched = (client: PoolClient): PoolClient => {
    const query = async (text: string, values?: unknown[]) => {
      if (typeof text === 'string' && what.test(text)) {
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

test('a client with as many quick reads as it likes has half of the connections for answers, and waits for itself', async () => {
  await using core = await createTestCore({
    settings: { limits: limitsExcept('127.0.0.9') },
    connectionsMax: CONNECTIONS.all,
  });
  const url = await core.listen();
  const ask = async (localAddress: string, path: string) => {
    const asked = request(`${url}/api/v0/${path}`, { localAddress, agent: false }).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const text = Buffer.concat(await response.toArray()).toString();
    const retryAfter = response.headers['retry-after'];
    return { status: response.statusCode!, retryAfter, code: JSON.parse(text).code };
  };
  using holding = holdLong(core.rooms.indexer.pool, /from "digests"/);
  const { held } = holding;
  const share = CONNECTIONS.answers / 2;
  const asked = 300;
  const waiting = Array.from({ length: asked }, () => ask('127.0.0.2', 'state/digest/messages'));
  const refused: unknown[] = [];
  for (const one of waiting)
    void one.then(
      ({ status, retryAfter, code }) => status !== 200 && refused.push([status, retryAfter, code]),
    );
  await until(
    'those that may not wait are refused',
    () => refused.length,
    (count) => count === asked - share - 200,
  );
  assert.deepEqual(refused[0], [429, '1', 'RATE_LIMITED']);
  assert.equal(held.count, share);
  for (const localAddress of ['127.0.0.3', '127.0.0.9', '127.0.0.3']) {
    assert.equal((await ask(localAddress, 'events?limit=1')).status, 200);
    assert.equal((await ask(localAddress, `messages/${'0'.repeat(64)}`)).code, 'MESSAGE_NOT_FOUND');
    assert.equal((await ask(localAddress, `price/${'0'.repeat(64)}`)).code, 'COST_NOT_FOUND');
  }
  holding[Symbol.dispose]();
  for (const one of waiting) await one;
  assert.equal(held.count, share + 200);
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

test('processes that the database has no connections for are told of, with what helps', () => {
  assert.equal(adviseOnConnections(5, 97), undefined);
  assert.equal(adviseOnConnections(700, undefined), undefined, 'a pooler has them wait');
  assert.match(
    adviseOnConnections(7, 97)!,
    /^7 processes of this node may open 119 .* gives them 97: raise max_conn/,
  );
  assert.match(adviseOnConnections(1, 16)!, /^one process of this node may open 17 /);
});

test('whatever takes long leaves connections for what takes a millisecond, and answers leave some for the node itself', () => {
  const { all, answers, lists, tries, pages, digests } = CONNECTIONS;
  assert.ok(lists + tries + pages + 2 * digests <= answers - 2);
  assert.ok(answers <= all - 4);
});
