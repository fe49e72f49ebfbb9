import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, test } from 'node:test';
import type { CreateDataPlane } from '../../port.ts';
import { askRaw, serveHttp, statusOf } from './http-client.ts';
import { openHttp2, serveHttp2 } from './http2-client.ts';
import { ADDRESS_B, NAME_A, NAME_B, NAME_DEAD, NAME_UNKNOWN, openClient, openWorld, until } from './world.ts';

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly rstCode: number;
}

async function readAnswer(stream: ClientHttp2Stream): Promise<Answer> {
  const chunks: Buffer[] = [];
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on('error', () => {});
  stream.once('response', (found) => {
    headers = found;
  });
  stream.once('trailers', (found) => {
    trailers = found;
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!stream.closed) await new Promise<void>((resolve) => stream.once('close', () => resolve()));
  const status = headers[':status'] as unknown as number | undefined;
  return { status, headers, trailers, body: Buffer.concat(chunks), rstCode: stream.rstCode };
}

function ask(
  session: ClientHttp2Session,
  authority: string,
  headers: OutgoingHttpHeaders = {},
): Promise<Answer> {
  return readAnswer(session.request({ ':authority': authority, ...headers }));
}

/** Sends every byte in a segment of its own. */
class Trickle extends Duplex {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on('data', (chunk) => this.push(chunk)).once('close', () => this.destroy());
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    for (const byte of chunk) this.#socket.write(Uint8Array.of(byte));
    setImmediate(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

export function http2Suite(create: CreateDataPlane): void {
  describe('HTTP/2 with prior knowledge', () => {
    test('one stream that gets no answer in time says nothing of what ends a later one', async () => {
      await using world = await openWorld(create, { idleTimeoutMs: 1_000 });
      serveHttp2(world.httpA, (_stream, headers) => {
        if (headers[':path'] === '/end') for (const socket of world.httpA.sockets) socket.destroy();
      });
      using client = await openHttp2(world);
      const told = async (path: string) =>
        String((await ask(client.session, NAME_A, { ':path': path })).body);
      assert.match(await told('/hang'), /response_timeout/);
      assert.match(await told('/end'), /broken/);
    });

    test('streams of one connection go to the instances that they name', async () => {
      await using world = await openWorld(create);
      serveHttp2(world.httpA, (stream, headers) => stream.end(`A ${headers[':method']} ${headers[':path']}`));
      serveHttp2(world.httpB, (stream, headers) => stream.end(`B ${headers[':method']} ${headers[':path']}`));
      using opened = await openHttp2(world);
      const { session } = opened;
      const names = [NAME_A, NAME_B.toUpperCase(), `${NAME_A}:8080`, `${NAME_B}.`];
      const answers = await Promise.all(names.map((name) => ask(session, name, { ':path': '/p?q' })));
      const bodies = answers.map(({ body }) => String(body));
      assert.deepEqual(bodies, ['A GET /p?q', 'B GET /p?q', 'A GET /p?q', 'B GET /p?q']);
      assert.equal((await world.plane.stats()).httpRequests, 4);
      // Routes of now, also on a connection that is open.
      world.plane.applyChanges([{ hostname: NAME_A, ipv6: ADDRESS_B }]);
      assert.equal(String((await ask(session, NAME_A, { ':method': 'DELETE' })).body), 'B DELETE /');
      assert.equal(world.httpA.sockets.size, 1);
    });

    test('many bytes both ways at once, trailers both ways, an early hint', async () => {
      await using world = await openWorld(create);
      serveHttp2(world.httpA, (stream, headers) => {
        stream.additionalHeaders({ ':status': 103, link: '</style.css>; rel=preload' });
        let sent: IncomingHttpHeaders = {};
        stream.once('trailers', (found) => {
          sent = found;
        });
        stream.respond({ ':status': 201, 'x-te': headers.te as string }, { waitForTrailers: true });
        stream.once('wantTrailers', () =>
          stream.sendTrailers({ 'grpc-status': '0', sum: sent.sum as string }),
        );
        stream.pipe(stream);
      });
      using opened = await openHttp2(world);
      const { session } = opened;
      const bodies = Array.from({ length: 20 }, () => randomBytes(200_000));
      await Promise.all(
        bodies.map(async (body, index) => {
          const stream = session.request(
            { ':authority': NAME_A, ':method': 'POST', te: 'trailers' },
            { waitForTrailers: true },
          );
          let hint: unknown;
          stream.once('headers', (headers) => {
            hint = headers.link;
          });
          stream.once('wantTrailers', () => stream.sendTrailers({ sum: String(index) }));
          stream.end(body);
          const answer = await readAnswer(stream);
          assert.ok(answer.body.equals(body));
          assert.deepEqual(
            [
              answer.status,
              answer.headers['x-te'],
              answer.trailers['grpc-status'],
              answer.trailers.sum,
              hint,
            ],
            [201, 'trailers', '0', String(index), '</style.css>; rel=preload'],
          );
        }),
      );
    });

    test('the preface and the first request may come byte by byte', async () => {
      await using world = await openWorld(create);
      serveHttp2(world.httpA, (stream) => stream.end('A'));
      const socket = await openClient(world.ports.http);
      const trickle = new Trickle(socket);
      const session = connect('http://gateway', { createConnection: () => trickle });
      session.on('error', () => {});
      assert.equal(String((await ask(session, NAME_A)).body), 'A');
      session.destroy();
      await until(async () => (await world.plane.stats()).httpOpen === 0);
      // HTTP/2 behind a request of HTTP/1.1 is none.
      serveHttp(world.httpA, (_request, response) => response.end('one'));
      const get = `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`;
      const answer = await askRaw(world.ports.http, `${get}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`).catch(() => '');
      assert.doesNotMatch(answer, /HTTP\/2/);
    });

    test('the instance sees who asked, in headers that strangers cannot forge', async () => {
      await using world = await openWorld(create);
      serveHttp2(world.httpA, (stream, headers) => stream.end(JSON.stringify(headers)));
      using opened = await openHttp2(world);
      const { session } = opened;
      const answer = await ask(session, NAME_A, {
        forwarded: 'for=6.6.6.6',
        'x-forwarded-for': '6.6.6.6',
        cookie: 'a=b',
      });
      assert.deepEqual(JSON.parse(String(answer.body)), {
        ':authority': NAME_A,
        ':method': 'GET',
        ':path': '/',
        ':scheme': 'http',
        cookie: 'a=b',
        forwarded: `for=127.0.0.1;host="${NAME_A}";proto=http`,
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-host': NAME_A,
        'x-forwarded-proto': 'http',
      });
    });

    test('what cannot be served is answered with a page that says why, and the others go on', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (_request, response) => response.end('only HTTP/1.1'));
      using opened = await openHttp2(world);
      const { session } = opened;
      const cases: [string, OutgoingHttpHeaders, number, RegExp][] = [
        [NAME_UNKNOWN, {}, 404, /HOSTNAME_NOT_FOUND/],
        [NAME_DEAD, {}, 502, /INSTANCE_UNREACHABLE/],
        [NAME_A, {}, 502, /INSTANCE_UNREACHABLE/],
        [NAME_A, { host: NAME_B }, 400, /more than one Host/],
        ['a'.repeat(300), {}, 431, /HEADERS_TOO_LARGE/],
      ];
      for (const [name, headers, status, reason] of cases) {
        const answer = await ask(session, name, headers);
        assert.equal(answer.status, status, name);
        assert.match(String(answer.body), reason, name);
      }
      const page = await ask(session, NAME_UNKNOWN, { accept: 'text/html' });
      assert.match(String(page.body), /^<!doctype html>.*<code>HOSTNAME_NOT_FOUND<\/code>/s);
      const upload = session.request({ ':authority': NAME_UNKNOWN, ':method': 'POST' });
      upload.write(Buffer.alloc(30_000));
      assert.equal((await readAnswer(upload)).status, 404);
      const tunnel = await readAnswer(session.request({ ':authority': NAME_A, ':method': 'CONNECT' }));
      assert.equal(tunnel.status, 405);
      serveHttp2(world.httpB, (stream) => stream.end('B'));
      assert.equal(String((await ask(session, NAME_B)).body), 'B');
    });

    test('what breaks in the middle is reset, on either side', async () => {
      await using world = await openWorld(create);
      let cancelled = 0;
      serveHttp2(world.httpA, (stream, headers) => {
        stream.respond({ ':status': 200 });
        stream.write('half');
        stream.resume();
        stream.once('close', () => {
          if (stream.rstCode === constants.NGHTTP2_CANCEL) cancelled++;
        });
        if (headers[':path'] === '/break') setImmediate(() => stream.destroy(new Error('broken')));
        if (headers[':path'] === '/fall') setImmediate(() => stream.session?.destroy());
      });
      using opened = await openHttp2(world);
      const { session } = opened;
      const broken = await ask(session, NAME_A, { ':path': '/break' });
      assert.equal(broken.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
      assert.notEqual((await ask(session, NAME_A, { ':path': '/fall' })).rstCode, 0);
      const left = session.request({ ':authority': NAME_A, ':path': '/', ':method': 'POST' });
      left.on('error', () => {});
      left.write('half');
      await once(left, 'response');
      left.close(constants.NGHTTP2_CANCEL);
      await until(() => cancelled === 1);
      session.destroy();
      await until(async () => world.httpA.sockets.size === 0 && (await world.plane.stats()).httpOpen === 0);
    });

    test('a connection without streams ends in time', async () => {
      await using world = await openWorld(create, { helloTimeoutMs: 150 });
      const session = connect(`http://127.0.0.1:${world.ports.http}`);
      session.on('error', () => {});
      await once(session, 'close');
    });

    test('a connection that has streams is drained', async () => {
      await using world = await openWorld(create);
      serveHttp2(world.httpA, (stream) => setTimeout(() => stream.end('slow'), 200));
      using opened = await openHttp2(world);
      const { session } = opened;
      const answer = ask(session, NAME_A);
      await until(async () => (await world.plane.stats()).httpRequests === 1);
      const drained = world.plane.drain(60_000);
      assert.equal(String((await answer).body), 'slow');
      await drained;
      assert.ok(session.closed);
    });

    test('something else behind the preface ends the connection', async () => {
      await using world = await openWorld(create);
      const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
      for (const wire of [`${preface}${'x'.repeat(100)}`, `${preface}\0\0\0`]) {
        const client = await openClient(world.ports.http);
        client.end(wire);
        client.resume();
        await once(client, 'close');
      }
      await until(async () => (await world.plane.stats()).httpOpen === 0);
      assert.equal(statusOf(await askRaw(world.ports.http, 'PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n')), 400);
    });
  });
}
