import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { askRaw, statusOf } from './testing/suite/http-client.ts';
import { serveHttp2 } from './testing/suite/http2-client.ts';
import {
  ACK,
  DATA,
  END_HEADERS,
  END_STREAM,
  GOAWAY_IN_ORDER,
  HEADERS,
  PREFACE,
  RST_STREAM,
  SETTINGS,
  typesOf,
  WIDE_WINDOWS,
  writeFields,
  writeFrame,
} from './testing/suite/http2-wire.ts';
import { isOwed, pour } from './testing/suite/unread.ts';
import { NAME_A, NAME_UNKNOWN, openClient, openWorld, until, type World } from './testing/suite/world.ts';
import { TsDataPlane } from './ts/plane.ts';

const create = (options: ConstructorParameters<typeof TsDataPlane>[0]) => new TsDataPlane(options);

/** It stands for an upgrade in HTTP/1.1: Node reads it in trailers, and throws where it is to send it. */
const UNSENDABLE = { 'http2-settings': 'AA' };

const POST = { ':method': 'POST', ':scheme': 'http', ':authority': NAME_A, ':path': '/' };

/** A request with a body and, behind it, trailers. */
const postWith = (trailers: Readonly<Record<string, string>>) =>
  Buffer.concat([
    PREFACE,
    writeFrame({ type: SETTINGS }),
    writeFrame({ type: HEADERS, flags: END_HEADERS, stream: 1, payload: writeFields(POST) }),
    writeFrame({ type: DATA, stream: 1, payload: Buffer.from('body') }),
    writeFrame({
      type: HEADERS,
      flags: END_HEADERS | END_STREAM,
      stream: 1,
      payload: writeFields(trailers),
    }),
  ]);

/** An instance that answers the first stream with trailers that no server of Node's would send. */
function answerWithTrailers(socket: Socket, trailers: Readonly<Record<string, string>>): void {
  let heard = Buffer.alloc(0);
  let isAnswered = false;
  socket.write(writeFrame({ type: SETTINGS }));
  socket.on('data', (chunk: Buffer) => {
    heard = Buffer.concat([heard, chunk]);
    if (isAnswered || !typesOf(heard.subarray(PREFACE.length)).includes(HEADERS)) return;
    isAnswered = true;
    socket.write(
      Buffer.concat([
        writeFrame({ type: SETTINGS, flags: ACK }),
        writeFrame({
          type: HEADERS,
          flags: END_HEADERS,
          stream: 1,
          payload: writeFields({ ':status': '200' }),
        }),
        writeFrame({ type: DATA, stream: 1, payload: Buffer.from('answer') }),
        writeFrame({
          type: HEADERS,
          flags: END_HEADERS | END_STREAM,
          stream: 1,
          payload: writeFields(trailers),
        }),
      ]),
    );
  });
}

const isServing = async ({ ports }: World) =>
  statusOf(await askRaw(ports.http, `GET / HTTP/1.1\r\nHost: ${NAME_UNKNOWN}\r\nConnection: close\r\n\r\n`));

/** A client at an address of its own; several connections of one are one client. */
function openFrom(address: string, { ports }: World): ClientHttp2Session & Disposable {
  const session = connectHttp2(`http://127.0.0.1:${ports.http}`, {
    createConnection: () => connect({ host: '127.0.0.1', port: ports.http, localAddress: address }),
  });
  session.on('error', () => {});
  return Object.assign(session, { [Symbol.dispose]: () => session.destroy() });
}

/** The status of an answer; undefined where the stream ended without one. */
function statusFor(session: ClientHttp2Session, path: string): Promise<number | undefined> {
  const stream = session.request({ ':authority': NAME_A, ':path': path });
  return new Promise((resolve) => {
    stream.on('error', () => {}).resume();
    stream.once('response', (headers) => resolve(headers[':status']));
    stream.once('close', () => resolve(undefined));
  });
}

describe('what strangers do over HTTP/2', () => {
  test('a client’s trailers that Node reads and refuses to send end nothing', async () => {
    await using world = await openWorld(create);
    const heard: string[] = [];
    serveHttp2(world.httpA, (stream) => {
      stream.once('trailers', (trailers) => heard.push(JSON.stringify(trailers)));
      stream.resume().once('end', () => setImmediate(() => stream.end('answer')));
    });
    const client = await openClient(world.ports.http);
    client.write(postWith({ ...UNSENDABLE, 'x-kept': '1' }));
    await until(() => heard.length === 1);
    assert.deepEqual(heard, ['{"x-kept":"1"}']);
    assert.equal(await isServing(world), 404);
    client.destroy();
  });

  test('nor do those of an instance', async () => {
    await using world = await openWorld(create);
    world.httpA.handle = (socket) => answerWithTrailers(socket, UNSENDABLE);
    using session = openFrom('127.0.0.1', world);
    const stream = session.request({ ':authority': NAME_A, ':path': '/' });
    stream.on('error', () => {}).resume();
    await new Promise<void>((resolve) => stream.once('close', () => resolve()));
    assert.notEqual(stream.rstCode, 0);
    assert.equal(await isServing(world), 404);
  });

  test('a request that is taken back in the packet that brings it ends nothing, whatever it asked for', async () => {
    await using world = await openWorld(create);
    serveHttp2(world.httpA, (stream) => stream.end('answer'));
    const closes = [];
    for (const method of ['GET', 'HEAD', 'CONNECT'])
      for (const name of [NAME_UNKNOWN, NAME_A])
        for (const code of [0, 8]) {
          const fields = { ...POST, ':method': method, ':authority': name };
          const client = await openClient(world.ports.http);
          client
            .resume()
            .write(
              Buffer.concat([
                PREFACE,
                writeFrame({ type: SETTINGS }),
                writeFrame({ type: HEADERS, flags: END_HEADERS, stream: 1, payload: writeFields(fields) }),
                writeFrame({ type: RST_STREAM, stream: 1, payload: Uint8Array.of(0, 0, 0, code) }),
              ]),
            );
          client.end();
          closes.push(once(client, 'close'));
        }
    await Promise.all(closes);
    assert.equal(await isServing(world), 404);
  });

  test('an instance that goes on saying that its answer is coming fills nobody’s memory', async () => {
    await using world = await openWorld(create);
    serveHttp2(world.httpA, (stream) => {
      for (let hint = 0; hint < 100; hint++) stream.additionalHeaders({ ':status': 103, link: `</${hint}>` });
      stream.end('answer');
    });
    using session = openFrom('127.0.0.1', world);
    const stream = session.request({ ':authority': NAME_A, ':path': '/' });
    let hints = 0;
    stream.on('headers', () => hints++).resume();
    const [headers] = await once(stream, 'response');
    assert.deepEqual([headers[':status'], hints], [200, 4]);
  });

  test('where no place is left, a client’s streams make room for who has none', async () => {
    await using world = await openWorld(create, { maxConnections: 4 });
    serveHttp2(world.httpA, (stream, headers) => {
      if (headers[':path'] === '/') stream.end('answer');
    });
    using greedy = openFrom('127.0.0.2', world);
    const ended = new Promise<void>((resolve) => greedy.once('close', () => resolve()));
    const asked = Array.from({ length: 8 }, () => statusFor(greedy, '/stay').catch(() => 0));
    assert.deepEqual(await Promise.all(asked.slice(4)), [503, 503, 503, 503]);
    using other = openFrom('127.0.0.3', world);
    assert.equal(await statusFor(other, '/'), 200);
    await ended;
  });

  test('a client’s streams have its share of places: an instance has room for others', async () => {
    await using world = await openWorld(create, { maxPerClient: 4, maxPerInstance: 5 });
    let staying = 0;
    serveHttp2(world.httpA, (stream, headers) => {
      if (headers[':path'] === '/') stream.end('answer');
      else staying++;
    });
    using greedy = openFrom('127.0.0.2', world);
    const asked = Array.from({ length: 8 }, () => statusFor(greedy, '/stay'));
    await until(() => staying >= 4);
    using other = openFrom('127.0.0.3', world);
    assert.equal(await statusFor(other, '/'), 200);
    assert.deepEqual(await Promise.all(asked.slice(4)), [503, 503, 503, 503]);
    greedy.destroy();
    await until(async () => (await world.plane.stats()).httpOpen === 1);
    using again = openFrom('127.0.0.2', world);
    assert.equal(await statusFor(again, '/'), 200);
  });

  test('who takes nothing of an answer does not outlast the time for connections on which nothing moves', async () => {
    await using world = await openWorld(create, { idleTimeoutMs: 200, keepAliveTimeoutMs: 200 });
    serveHttp2(world.httpA, (stream) => pour(stream));
    const client = await openClient(world.ports.http);
    const fields = { ...POST, ':method': 'GET' };
    const request = writeFrame({
      type: HEADERS,
      flags: END_HEADERS | END_STREAM,
      stream: 1,
      payload: writeFields(fields),
    });
    client.write(Buffer.concat([PREFACE, WIDE_WINDOWS, request]));
    await until(async () => (await world.plane.stats()).httpRequests === 1);
    await until(async () => (await world.plane.stats()).httpOpen === 0);
    client.destroy();
  });

  test('what an instance does not take is not kept once its client has gone', async () => {
    await using world = await openWorld(create);
    world.httpA.handle = (socket) => void socket.pause().write(WIDE_WINDOWS);
    using session = openFrom('127.0.0.2', world);
    pour(session.request({ ':authority': NAME_A, ':method': 'POST' }).on('error', () => {}));
    await until(() => isOwed(world.upstreamHttpPort));
    session.destroy();
    await until(async () => !(await isOwed(world.upstreamHttpPort)));
  });

  test('nor is it by an instance that took no more requests meanwhile', async () => {
    await using world = await openWorld(create);
    const answer = writeFrame({
      type: HEADERS,
      flags: END_HEADERS,
      stream: 1,
      payload: writeFields({ ':status': '200' }),
    });
    world.httpA.handle = (socket) => {
      socket.write(WIDE_WINDOWS);
      socket.once('data', () => socket.pause().write(Buffer.concat([answer, GOAWAY_IN_ORDER])));
    };
    using session = openFrom('127.0.0.2', world);
    const ask = async () => {
      const stream = session.request({ ':authority': NAME_A, ':method': 'POST' }).on('error', () => {});
      await once(stream, 'response');
      return stream;
    };
    pour(await ask());
    await until(() => isOwed(world.upstreamHttpPort));
    await ask();
    session.destroy();
    await until(async () => !(await isOwed(world.upstreamHttpPort)));
  });
});
