import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import type { CreateDataPlane } from '../../port.ts';
import { ask, askRaw, serveHttp, statusOf } from './http-client.ts';
import { NAME_A, NAME_UNKNOWN, openClient, openWorld, readAll, until } from './world.ts';

const MEGABYTE = 1024 * 1024;

export function httpBodiesSuite(create: CreateDataPlane): void {
  describe('HTTP messages', () => {
    test('30 MB up and down, of known length and in chunks', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (request, response) => request.pipe(response));
      const body = randomBytes(30 * MEGABYTE);
      const sized = { 'content-length': String(body.length) };
      for (const headers of [sized, { 'transfer-encoding': 'chunked' }]) {
        const answer = await ask(world.ports.http, NAME_A, { method: 'PUT', body, headers });
        assert.ok(answer.body.equals(body));
      }
    });

    test('streams both ways at once: each chunk is answered before the next is sent', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (request, response) => {
        response.flushHeaders();
        request.on('data', (chunk) => response.write(String(chunk).toUpperCase()));
        request.on('end', () => response.end());
      });
      const { http } = world.ports;
      const headers = { host: NAME_A, 'transfer-encoding': 'chunked' };
      const asked = httpRequest({ host: '127.0.0.1', port: http, method: 'POST', headers, agent: false });
      asked.flushHeaders();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      for (const word of ['one', 'two', 'three']) {
        asked.write(word);
        assert.equal(String((await once(answer, 'data'))[0]), word.toUpperCase());
      }
      asked.end();
      await once(answer.resume(), 'end');
    });

    test('the instance sees who asked and how, in headers that strangers cannot forge', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (request, response) => response.end(JSON.stringify(request.rawHeaders)));
      const wire = [
        'POST / HTTP/1.1',
        `Host: ${NAME_A}:8080`,
        'X-Forwarded-For: 6.6.6.6',
        'x-forwarded-proto: https',
        'Forwarded: for=6.6.6.6',
        'X-Kept: 1',
        'X-Kept: 2',
        'X-Dropped: 3',
        'Keep-Alive: timeout=9',
        'Connection: close, x-dropped, host',
        '',
        '',
      ].join('\r\n');
      const answer = await askRaw(world.ports.http, wire);
      const raw = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as string[];
      const headers = raw.flatMap((name, i) => (i % 2 ? [] : [`${name}: ${raw[i + 1]}`]));
      assert.deepEqual(headers, [
        `Host: ${NAME_A}:8080`,
        'X-Kept: 1',
        'X-Kept: 2',
        `Forwarded: for=127.0.0.1;host="${NAME_A}:8080";proto=http`,
        'X-Forwarded-For: 127.0.0.1',
        'X-Forwarded-Proto: http',
        `X-Forwarded-Host: ${NAME_A}:8080`,
        'Content-Length: 0',
        'Connection: close',
      ]);
    });

    test('the answer comes back as it was: status, reason, headers in order, no body where there is none', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (request, response) => {
        response.sendDate = false;
        if (request.url === '/204') response.writeHead(204).end();
        else if (request.url === '/304') response.writeHead(304, { etag: '"x"', 'content-length': 5 }).end();
        else
          response
            .writeHead(299, 'Odd But Fine', ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Content-Length', '5'])
            .end('hello');
      });
      const { http } = world.ports;
      const get = await askRaw(http, `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\nConnection: close\r\n\r\n`);
      assert.equal(
        get,
        'HTTP/1.1 299 Odd But Fine\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
      );
      const head = await ask(http, NAME_A, { method: 'HEAD' });
      assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [299, '5', 0]);
      assert.equal((await ask(http, NAME_A, { path: '/204' })).status, 204);
      const unchanged = await ask(http, NAME_A, { path: '/304' });
      assert.deepEqual([unchanged.status, unchanged.headers.etag], [304, '"x"']);
      const old = await askRaw(http, `GET / HTTP/1.0\r\nHost: ${NAME_A}\r\n\r\n`);
      assert.equal(statusOf(old), 299);
    });

    test('trailers pass', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (_request, response) => {
        response.writeHead(200, { trailer: 'x-sum' });
        response.write('body');
        response.addTrailers({ 'X-Sum': '42' });
        response.end();
      });
      const answer = await ask(world.ports.http, NAME_A);
      assert.equal(answer.message.trailers['x-sum'], '42');
    });

    test('Expect: 100-continue is for the instance to grant or to refuse', async () => {
      await using world = await openWorld(create);
      const server = serveHttp(world.httpA, (request, response) => request.pipe(response));
      server.on('checkContinue', (request, response) => {
        if (request.url === '/no') return void response.writeHead(417).end();
        response.writeContinue();
        request.pipe(response);
      });
      const announce = (host: string, path: string) =>
        `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n`;
      const client = await openClient(world.ports.http);
      client.write(announce(NAME_A, '/yes'));
      const [first] = await once(client, 'data');
      assert.equal(String(first), 'HTTP/1.1 100 Continue\r\n\r\n');
      client.write('body');
      await until(() => client.bytesRead > 100);
      client.destroy();
      for (const [host, path, status] of [
        [NAME_A, '/no', 417],
        [NAME_UNKNOWN, '/', 404],
      ] as const) {
        // The body never comes, and nobody waits for it: the gateway closes.
        const refused = await askRaw(world.ports.http, announce(host, path));
        assert.equal(statusOf(refused), status);
        assert.match(refused, /connection: close/i);
      }
    });

    test('a client that closes its side still gets the answer', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (_request, response) => setTimeout(() => response.end('late'), 30));
      const client = await openClient(world.ports.http);
      client.end(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`);
      assert.match(String(await readAll(client)), /late/);
    });

    test('an early answer to a long upload reaches the client', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (_request, response) => {
        response.writeHead(413, { connection: 'close' }).end('too much');
      });
      const client = await openClient(world.ports.http);
      client.write(`POST / HTTP/1.1\r\nHost: ${NAME_A}\r\nContent-Length: 50000000\r\n\r\n`);
      client.write(Buffer.alloc(100_000));
      const [answer] = await once(client, 'data');
      assert.equal(statusOf(String(answer)), 413);
      client.destroy();
    });

    test('a reader that stops holds the instance back, and loses nothing', async () => {
      await using world = await openWorld(create);
      const total = 64 * MEGABYTE;
      const block = randomBytes(MEGABYTE);
      let sent = 0;
      serveHttp(world.httpA, async (_request, response) => {
        while (sent < total) {
          sent += block.length;
          if (!response.write(block)) await once(response, 'drain');
        }
        response.end();
      });
      const client = await openClient(world.ports.http);
      client.write(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\nConnection: close\r\n\r\n`);
      let last = -1;
      let since = 0;
      await until(() => {
        if (sent !== last) since = performance.now();
        last = sent;
        return sent > 0 && performance.now() - since > 300;
      });
      assert.ok(sent < total / 2, `${sent} bytes were taken for a client that reads nothing`);
      const answer = await readAll(client);
      assert.ok(answer.length > total);
      client.destroy();
    });
  });
}
