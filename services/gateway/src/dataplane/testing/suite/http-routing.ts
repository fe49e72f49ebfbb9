import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, test } from 'node:test';
import type { CreateDataPlane } from '../../port.ts';
import { ask, askRaw, serveHttp, statusOf } from './http-client.ts';
import {
  ADDRESS_B,
  endingOf,
  NAME_A,
  NAME_B,
  NAME_UNKNOWN,
  openClient,
  openWorld,
  readAll,
  type World,
} from './world.ts';

/** Each instance answers with its own letter and what it was asked. */
function serveLetters(world: World): void {
  serveHttp(world.httpA, (request, response) => response.end(`A ${request.method} ${request.url}`));
  serveHttp(world.httpB, (request, response) => response.end(`B ${request.method} ${request.url}`));
}

export function httpRoutingSuite(create: CreateDataPlane): void {
  describe('HTTP by Host', () => {
    test('each name reaches its instance; case, port and trailing dot do not matter', async () => {
      await using world = await openWorld(create);
      serveLetters(world);
      const { http } = world.ports;
      for (const host of [NAME_A, NAME_A.toUpperCase(), `${NAME_A}:8080`, `${NAME_A}.`, `${NAME_A}.:80`]) {
        assert.equal(String((await ask(http, host, { path: '/p?q=1' })).body), 'A GET /p?q=1', host);
      }
      assert.equal(String((await ask(http, NAME_B, { method: 'DELETE' })).body), 'B DELETE /');
      const challenge = '/.well-known/acme-challenge/a_B-9%2F';
      assert.equal(String((await ask(http, NAME_B, { path: challenge })).body), `B GET ${challenge}`);
    });

    test('one kept connection, several hosts', async () => {
      await using world = await openWorld(create);
      serveLetters(world);
      using agent = disposable(new Agent({ keepAlive: true, maxSockets: 1 }));
      const ports = new Set<number | undefined>();
      for (const host of [NAME_A, NAME_B, NAME_UNKNOWN, NAME_A]) {
        const answer = await ask(world.ports.http, host, { agent: agent.agent });
        ports.add(answer.localPort);
        const expected = host === NAME_UNKNOWN ? '404' : host === NAME_A ? 'A' : 'B';
        assert.ok(String(answer.body).startsWith(expected), host);
      }
      assert.equal(ports.size, 1);
      assert.equal((await world.plane.stats()).httpRequests, 4);
    });

    test('pipelined requests are answered in order, one at a time', async () => {
      await using world = await openWorld(create);
      let serving = 0;
      let mostAtOnce = 0;
      for (const [instance, letter] of [
        [world.httpA, 'A'],
        [world.httpB, 'B'],
      ] as const) {
        serveHttp(instance, (request, response) => {
          mostAtOnce = Math.max(mostAtOnce, ++serving);
          // The first answer is the slowest.
          setTimeout(
            () => response.end(`${letter}${request.url};`, () => serving--),
            request.url === '/1' ? 60 : 0,
          );
        });
      }
      const get = (host: string, path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
      const post = `POST /4 HTTP/1.1\r\nHost: ${NAME_B}\r\nContent-Length: 3\r\n\r\nabc`;
      const last = `GET /5 HTTP/1.1\r\nHost: ${NAME_A}\r\nConnection: close\r\n\r\n`;
      const answer = await askRaw(
        world.ports.http,
        get(NAME_A, '/1') + get(NAME_B, '/2') + get(NAME_A, '/3') + post + last,
      );
      assert.deepEqual(answer.match(/[AB]\/\d;/g), ['A/1;', 'B/2;', 'A/3;', 'B/4;', 'A/5;']);
      assert.equal(mostAtOnce, 1);
    });

    test('more pipelined requests than may wait end the connection', async () => {
      await using world = await openWorld(create);
      serveHttp(world.httpA, () => {});
      const client = await openClient(world.ports.http);
      client.write(`GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`.repeat(500));
      await endingOf(client);
    });

    test('a request without one good Host is refused with a page that says why', async () => {
      await using world = await openWorld(create);
      serveLetters(world);
      const { http } = world.ports;
      const close = 'Connection: close\r\n\r\n';
      const cases: [string, string, number, RegExp][] = [
        ['no Host', `GET / HTTP/1.1\r\n${close}`, 400, /no Host/],
        ['empty Host', `GET / HTTP/1.1\r\nHost:\r\n${close}`, 400, /no Host/],
        ['HTTP/1.0 without Host', 'GET / HTTP/1.0\r\n\r\n', 400, /no Host/],
        [
          'two Hosts',
          `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\nhost: ${NAME_A}\r\n${close}`,
          400,
          /more than one/,
        ],
        ['Host with a space', `GET / HTTP/1.1\r\nHost: ${NAME_A} x\r\n${close}`, 400, /not a host name/],
        ['Host with a path', `GET / HTTP/1.1\r\nHost: ${NAME_A}/x\r\n${close}`, 400, /not a host name/],
        ['Host with a user', `GET / HTTP/1.1\r\nHost: x@${NAME_A}\r\n${close}`, 400, /not a host name/],
        [
          'target and Host disagree',
          `GET http://${NAME_B}/ HTTP/1.1\r\nHost: ${NAME_A}\r\n${close}`,
          400,
          /names one host/,
        ],
        ['an odd target', `GET a:b HTTP/1.1\r\nHost: ${NAME_A}\r\n${close}`, 400, /INVALID/],
        ['a long Host', `GET / HTTP/1.1\r\nHost: ${'a'.repeat(300)}\r\n${close}`, 431, /HEADERS_TOO_LARGE/],
        [
          'a huge Host',
          `GET / HTTP/1.1\r\nHost: ${'a'.repeat(500_000)}\r\n${close}`,
          431,
          /HEADERS_TOO_LARGE/,
        ],
        [
          'many headers',
          `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n${'X-Y: z\r\n'.repeat(5000)}${close}`,
          431,
          /HEADERS_TOO_LARGE/,
        ],
        ['CONNECT', `CONNECT ${NAME_A}:22 HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`, 405, /METHOD_NOT_ALLOWED/],
        ['not HTTP', '\x16\x03\x01\x00\x05hello', 400, /INVALID_PARAMETERS/],
      ];
      for (const [what, wire, status, reason] of cases) {
        const answer = await askRaw(http, wire);
        assert.equal(statusOf(answer), status, `${what}: ${answer}`);
        assert.match(answer, reason, what);
        assert.match(answer, /content-type: text\/plain/i, what);
      }
      const absolute = await askRaw(http, `GET http://${NAME_A}?x HTTP/1.1\r\nHost: ${NAME_A}\r\n${close}`);
      assert.match(absolute, /A GET \/\?x$/);
    });

    test('an unknown name: 404 and why, and the connection stays usable', async () => {
      await using world = await openWorld(create);
      const answer = await ask(world.ports.http, NAME_UNKNOWN, { method: 'POST', body: Buffer.from('abc') });
      assert.equal(answer.status, 404);
      assert.match(String(answer.body), new RegExp(`${NAME_UNKNOWN}: not_routed\\n\\nHOSTNAME_NOT_FOUND`));
      const head = await ask(world.ports.http, NAME_UNKNOWN, { method: 'HEAD' });
      assert.deepEqual([head.status, head.body.length], [404, 0]);
      assert.equal(head.headers['net-gateway-error'], 'HOSTNAME_NOT_FOUND');
    });

    test('why is told as the client likes it: a page, JSON, else text', async () => {
      await using world = await openWorld(create);
      const accepted = (accept: string) => ask(world.ports.http, NAME_UNKNOWN, { headers: { accept } });
      const page = await accepted('text/html,application/xhtml+xml,*/*;q=0.8');
      assert.match(String(page.headers['content-type']), /^text\/html/);
      assert.match(String(page.headers['content-security-policy']), /default-src 'none'/);
      const html = String(page.body);
      for (const said of ['404 Not Found', NAME_UNKNOWN, 'skerry domain why', 'HOSTNAME_NOT_FOUND'])
        assert.ok(html.includes(said), said);
      const json = await accepted('application/json');
      assert.deepEqual(JSON.parse(String(json.body)), {
        error: `${NAME_UNKNOWN}: not_routed`,
        status: 'error',
        code: 'HOSTNAME_NOT_FOUND',
      });
      const text = await accepted('*/*');
      assert.match(String(text.headers['content-type']), /^text\/plain/);
      for (const { headers, status } of [page, json, text]) {
        const { vary, 'net-gateway-error': code } = headers;
        assert.deepEqual([status, vary, code], [404, 'accept', 'HOSTNAME_NOT_FOUND']);
      }
    });

    test('smuggling: a request of two possible lengths reaches no instance', async () => {
      await using world = await openWorld(create);
      let asked = 0;
      serveHttp(world.httpA, (_request, response) => {
        asked++;
        response.end();
      });
      const head = `POST / HTTP/1.1\r\nHost: ${NAME_A}\r\n`;
      const smuggled = `GET /smuggled HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`;
      for (const wire of [
        `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
        `${head}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd${smuggled}`,
        `${head}Content-Length: +4\r\n\r\nabcd${smuggled}`,
        `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
        `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
        `${head}Transfer-Encoding: identity\r\n\r\n${smuggled}`,
        `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
        `${head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`.replace('1.1', '1.0'),
        `${head}Content-Length : 4\r\n\r\nabcd${smuggled}`,
        `${head} Content-Length: 4\r\n\r\nabcd${smuggled}`.replace('\r\n Content', '\r\nX: y\n Content'),
      ]) {
        assert.equal(statusOf(await askRaw(world.ports.http, wire)), 400, JSON.stringify(wire));
      }
      assert.equal(asked, 0);
    });

    test('a head that does not come to its end in time is given up', async () => {
      await using world = await openWorld(create, { helloTimeoutMs: 200 });
      const silent = await openClient(world.ports.http);
      const trickling = await openClient(world.ports.http);
      trickling.write('GET / HTTP/1.1\r\n');
      const trickle = setInterval(() => trickling.write('X: y\r\n'), 10);
      const answers = await Promise.all([readAll(silent), readAll(trickling)]);
      clearInterval(trickle);
      for (const answer of answers) assert.equal(statusOf(String(answer)), 408);
      for (const client of [silent, trickling]) client.destroy();
    });

    test('changes of routes count for the next request of a kept connection, not for the present one', async () => {
      await using world = await openWorld(create);
      serveLetters(world);
      using agent = disposable(new Agent({ keepAlive: true, maxSockets: 1 }));
      serveHttp(world.httpA, (_request, response) => {
        response.write('first half, ');
        world.plane.applyChanges([{ hostname: NAME_A, ipv6: ADDRESS_B }]);
        setImmediate(() => response.end('second half'));
      });
      const options = { agent: agent.agent };
      assert.equal(String((await ask(world.ports.http, NAME_A, options)).body), 'first half, second half');
      assert.equal(String((await ask(world.ports.http, NAME_A, options)).body), 'B GET /');
    });
  });
}

function disposable(agent: Agent): Disposable & { agent: Agent } {
  return { agent, [Symbol.dispose]: () => agent.destroy() };
}
