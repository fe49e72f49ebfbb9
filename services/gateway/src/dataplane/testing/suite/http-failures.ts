import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import type { CreateDataPlane } from '../../port.ts';
import { openFullListener } from './full-listener.ts';
import { ask, askRaw, serveHttp, statusOf } from './http-client.ts';
import {
  endingOf,
  NAME_A,
  NAME_DEAD,
  openClient,
  openWorld,
  readAll,
  readBytes,
  until,
  type World,
} from './world.ts';

/** A client that asked to switch to a protocol of its own, and what came back first. */
async function openUpgrade(world: World, host: string, protocol = 'echo'): Promise<Socket> {
  const client = await openClient(world.ports.http);
  client.write(`GET /chat HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`);
  return client;
}

const SWITCHED =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\nX-Odd: yes\r\n\r\n';

function serveUpgrade(world: World): void {
  const server = serveHttp(world.httpA, (request, response) =>
    response.end(`plain ${request.headers.upgrade}`),
  );
  server.on('upgrade', (_request, socket: Socket, head: Buffer) => {
    socket.on('error', () => {});
    socket.write(`${SWITCHED}welcome`);
    socket.write(head);
    socket.on('data', (chunk) => socket.write(chunk));
    socket.on('end', () => socket.end());
  });
}

export function httpFailuresSuite(create: CreateDataPlane): void {
  describe('HTTP upgrades', () => {
    test('after 101 bytes pass both ways, with half-close', async () => {
      await using world = await openWorld(create);
      serveUpgrade(world);
      const client = await openUpgrade(world, NAME_A);
      const expected = `${SWITCHED}welcome`;
      assert.equal(String(await readBytes(client, expected.length)), expected);
      client.end('over and out');
      assert.equal(String(await readAll(client)), 'over and out');
    });

    test('bytes sent right behind the request are not lost', async () => {
      await using world = await openWorld(create);
      serveUpgrade(world);
      const client = await openUpgrade(world, NAME_A);
      client.end('eager');
      assert.equal(String(await readAll(client)), `${SWITCHED}welcomeeager`);
    });

    test('a reset after the switch resets the other side', async () => {
      await using world = await openWorld(create);
      serveUpgrade(world);
      const client = await openUpgrade(world, NAME_A);
      await readBytes(client, SWITCHED.length);
      const [instance] = world.httpA.sockets;
      client.resetAndDestroy();
      assert.equal(await endingOf(instance!), 'reset');
    });

    test('an instance that does not switch answers as to any request', async () => {
      await using world = await openWorld(create);
      const refused = 'HTTP/1.1 426 No\r\nContent-Length: 3\r\n\r\nno\n';
      world.httpA.handle = (socket) => void socket.once('data', () => socket.end(refused));
      const client = await openUpgrade(world, NAME_A);
      const answer = String(await readAll(client));
      assert.equal(statusOf(answer), 426);
      assert.ok(answer.endsWith('\r\n\r\nno\n'));
      client.destroy();
    });

    test('a switch to h2c is not offered to the instance', async () => {
      await using world = await openWorld(create);
      serveUpgrade(world);
      const answer = await askRaw(
        world.ports.http,
        `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n`,
      );
      assert.match(answer, /plain undefined$/);
    });

    test('an upgrade gives its place at the instance back, however it ends', async () => {
      await using world = await openWorld(create, { maxPerInstance: 1 });
      const isOver = () => until(async () => (await world.plane.stats()).httpOpen === 0);
      serveUpgrade(world);
      const switched = await openUpgrade(world, NAME_A);
      await readBytes(switched, SWITCHED.length);
      assert.equal((await ask(world.ports.http, NAME_A)).status, 503);
      // It is that of the instance, whichever address the gateway is asked at.
      const other = await openClient(world.ports.http, '::1');
      other.end(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\nConnection: close\r\n\r\n`);
      assert.equal(statusOf(String(await readAll(other))), 503);
      other.destroy();
      switched.destroy();
      await isOver();
      serveHttp(world.httpA, (_request, response) => response.end('plain'));
      for (const [host, status] of [
        [NAME_A, 200],
        [NAME_A, 200],
        [NAME_DEAD, 502],
        [NAME_DEAD, 502],
      ] as const) {
        const client = await openUpgrade(world, host);
        assert.equal(statusOf(String(await readAll(client))), status);
        client.destroy();
        await isOver();
      }
      assert.equal((await ask(world.ports.http, NAME_A)).status, 200);
    });

    test('an instance that switches although nobody asked it has not answered', async () => {
      await using world = await openWorld(create);
      world.httpA.handle = (socket) => void socket.once('data', () => socket.write(SWITCHED));
      for (const body of [undefined, Buffer.from('abc')]) {
        const answer = await ask(world.ports.http, NAME_A, { method: body ? 'POST' : 'GET', body });
        assert.equal(answer.status, 502);
      }
    });

    test('an upgrade for a dead instance or an unknown name gets its page', async () => {
      await using world = await openWorld(create);
      for (const [host, status] of [
        [NAME_DEAD, 502],
        ['nobody.example', 404],
        ['two words', 400],
      ] as const) {
        const client = await openUpgrade(world, host);
        assert.equal(statusOf(String(await readAll(client))), status);
        client.destroy();
      }
    });
  });

  describe('HTTP instances that fail', () => {
    test('refused: 502; no connection in time: 504', async () => {
      {
        await using world = await openWorld(create);
        const refused = await ask(world.ports.http, NAME_DEAD);
        assert.deepEqual([refused.status, /refused/.test(String(refused.body))], [502, true]);
      }
      await using world = await openWorld(create, { connectTimeoutMs: 200 });
      await using _full = await openFullListener('127.0.0.9', world.upstreamHttpPort);
      const late = await ask(world.ports.http, NAME_DEAD);
      assert.deepEqual([late.status, /connect_timeout/.test(String(late.body))], [504, true]);
    });

    test('an instance that takes the request and never answers: 504', async () => {
      await using world = await openWorld(create, { idleTimeoutMs: 200 });
      serveHttp(world.httpA, (request) => request.resume());
      for (const body of [undefined, Buffer.from('abc')]) {
        const answer = await ask(world.ports.http, NAME_A, { method: body ? 'POST' : 'GET', body });
        assert.deepEqual([answer.status, /response_timeout/.test(String(answer.body))], [504, true]);
      }
    });

    test('an instance that takes a request on a kept connection and never answers is asked once', async () => {
      await using world = await openWorld(create, { idleTimeoutMs: 2_000 });
      let requests = 0;
      serveHttp(world.httpA, (_request, response) => {
        if (++requests === 1) response.end('ok');
      });
      assert.equal((await ask(world.ports.http, NAME_A)).status, 200);
      assert.equal((await ask(world.ports.http, NAME_A)).status, 504);
      assert.equal(requests, 2);
    });

    test('closed without an answer, or with one that is not HTTP: 502, also for a body', async () => {
      await using world = await openWorld(create);
      for (const reply of ['', 'SSH-2.0-OpenSSH_9\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n']) {
        world.httpA.handle = (socket) => void socket.once('data', () => socket.end(reply));
        for (const body of [undefined, Buffer.alloc(1_000_000)]) {
          const answer = await ask(world.ports.http, NAME_A, { method: body ? 'POST' : 'GET', body });
          assert.equal(answer.status, 502, reply);
        }
      }
    });

    test('an answer that is cut is cut for the client too', async () => {
      await using world = await openWorld(create);
      for (const head of ['Content-Length: 100\r\n', 'Transfer-Encoding: chunked\r\n']) {
        const start = `HTTP/1.1 200 OK\r\n${head}\r\n5\r\nhello\r\n`;
        world.httpA.handle = (socket) => void socket.once('data', () => socket.end(start));
        await assert.rejects(ask(world.ports.http, NAME_A));
      }
    });

    test("a kept connection that the instance has closed is not the client's problem", async () => {
      await using world = await openWorld(create);
      // Answers once, then takes the next request of the same connection and hangs up.
      world.httpA.handle = (socket) => {
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
          socket.once('data', () => socket.destroy());
        });
      };
      const agent = new Agent({ keepAlive: true });
      for (let i = 0; i < 5; i++) {
        const answer = await ask(world.ports.http, NAME_A, { agent });
        assert.equal(String(answer.body), 'ok');
      }
      agent.destroy();
    });

    test('a client that leaves in the middle is gone for the instance as well', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, (request, response) => {
        if (request.method === 'GET') response.write('and so on');
        request.resume();
      });
      for (const method of ['GET', 'POST']) {
        const client = await openClient(world.ports.http);
        client.write(
          `${method} / HTTP/1.1\r\nHost: ${NAME_A}\r\nContent-Length: ${method === 'GET' ? 0 : 99}\r\n\r\n`,
        );
        await until(() => world.httpA.sockets.size === 1);
        if (method === 'GET') await once(client, 'data');
        client.resetAndDestroy();
        await until(() => world.httpA.sockets.size === 0);
      }
      await until(async () => (await world.plane.stats()).httpOpen === 0);
    });
  });
}
