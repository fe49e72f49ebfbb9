import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { watchEvents } from './events.ts';
import { CoreReader } from './reads/core-reader.ts';

const DATA = { instance_id: 'a'.repeat(64) };
const eventOf = (cursor: string) =>
  `id: ${cursor}\ndata: ${JSON.stringify({ cursor, kind: 'instance_removed', time_ms: 1, data: DATA })}\n\n`;

test('a stream that goes on is not ended, however long ago it began', async (t) => {
  /** What has a time of its own, which is over at once when the test says so. */
  const times: AbortController[] = [];
  t.mock.method(AbortSignal, 'timeout', () => {
    const time = new AbortController();
    times.push(time);
    return time.signal;
  });
  const streams: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    streams.push(response);
    response.setHeader('content-type', 'text/event-stream');
    response.write(eventOf('1'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = new AbortController();
  const failures: unknown[] = [];
  const onDisconnect = (error: unknown) => {
    failures.push(error);
    stop.abort();
  };
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const seen: string[] = [];
    for await (const { cursor } of watchEvents(url, { cursor: '0', signal: stop.signal, onDisconnect })) {
      if (seen.push(cursor) === 2) break;
      for (const time of times) time.abort();
      streams[0]!.write(eventOf('2'));
    }
    assert.deepEqual([seen, failures, streams.length], [['1', '2'], [], 1]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

/** What is told of a stream that sends one event, and is lost then. */
async function lossOf(lose: (server: Server) => void) {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/event-stream');
    response.write(eventOf('1'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = new AbortController();
  const failures: unknown[] = [];
  const onDisconnect = (error: unknown) => {
    failures.push(error);
    stop.abort();
  };
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for await (const _ of watchEvents(url, { cursor: '0', signal: stop.signal, onDisconnect })) lose(server);
    const [{ code, message }] = failures as [{ code: string; message: string }];
    return { code, message, url };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('a stream that falls silent is lost, and whose silence it was is told', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { code, message, url } = await lossOf(() => t.mock.timers.tick(60_000));
  assert.equal(code, 'UPSTREAM_UNAVAILABLE');
  assert.equal(message, `${url} was silent for 35 s`);
});

test('a stream that breaks off is lost, and whose it was is told', async () => {
  const { code, message, url } = await lossOf((server) => server.closeAllConnections());
  assert.equal(code, 'UPSTREAM_UNAVAILABLE');
  assert.ok(message.startsWith(`${url} broke its answer off (`), message);
});

test('a client is asked for events with nothing more, and whoever breaks off leaves no stream', async () => {
  const closed = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    response.once('close', closed.resolve);
    response.setHeader('content-type', 'text/event-stream');
    response.write(eventOf('1'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for await (const { cursor } of new CoreReader({ url }).events()) {
      assert.equal(cursor, '1');
      break;
    }
    await closed.promise;
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
