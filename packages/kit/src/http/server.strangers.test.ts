import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol/forms';
import { Type } from '@skerry/protocol/type';
import { pino } from 'pino';
import { createLogger } from '../daemon/log.ts';
import { until } from '../testing/until.ts';
import { whyCoded } from './http-rules.ts';
import { listen } from './listen.ts';
import { createHttpServer } from './server.ts';
import { takeUpgrade, upgradeOf } from './upgrade.ts';

async function createServer() {
  const app = await createHttpServer({ log: createLogger('test', 'silent'), corsMethods: ['GET', 'PUT'] });
  await app.register(
    async (scope) => {
      scope.get('/things/:id', async () => ({}));
      scope.put('/things/:id', async () => ({}));
      scope.post('/things', async () => ({}));
      scope.get('/files/*', async () => ({}));
      scope.get('/lists/:name.json', async () => ({}));
      scope.get(
        '/list',
        {
          schema: {
            querystring: Type.Object(
              {
                status: Type.Optional(Type.Enum(['running', 'stopped'])),
                kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
                one: Type.Optional(Type.Literal('this')),
              },
              { additionalProperties: false },
            ),
          },
        },
        async () => ({}),
      );
    },
    { prefix: '/api' },
  );
  return app;
}

test('S10: a path that exists answers another method with 405, Allow and what it takes', async () => {
  await using app = await createServer();
  const cases: [string, string, string][] = [
    ['DELETE', '/api/things/a%20b?x=1', 'GET, HEAD, PUT'],
    ['PUT', '/api/things', 'POST'],
    ['POST', '/api/files/a/b', 'GET, HEAD'],
    ['POST', '/api/lists/a.json', 'GET, HEAD'],
  ];
  for (const [method, url, allow] of cases) {
    const { statusCode, headers, ...response } = await app.inject({ method: method as 'PUT', url });
    const { code, error } = response.json();
    assert.deepEqual([statusCode, headers.allow, code], [405, allow, 'METHOD_NOT_ALLOWED'], url);
    assert.match(error, new RegExp(`takes ${allow}, not ${method}`));
  }
  for (const url of ['/api/nothing', '/things', '/api/things/a/b', '/api/lists/a', '/api/lists/axjson'])
    assert.equal((await app.inject({ method: 'PUT', url })).statusCode, 404, url);
});

test('OPTIONS says what a path takes; a preflight what pages of other origins may send', async () => {
  await using app = await createServer();
  const options = (url: string, headers = {}) => app.inject({ method: 'OPTIONS', url, headers });
  const origin = 'https://page.example';
  for (const headers of [{}, { origin }, { 'access-control-request-method': 'PUT' }]) {
    const plain = await options('/api/things/1?x=1', headers);
    assert.deepEqual([plain.statusCode, plain.headers.allow, plain.body], [204, 'GET, HEAD, PUT', '']);
    assert.equal(plain.headers['access-control-allow-origin'], '*');
    const missing = await options('/api/nothing', headers);
    assert.deepEqual([missing.statusCode, missing.json().code], [404, 'ROUTE_NOT_FOUND']);
  }
  const preflight = await options('/api/nothing', { origin, 'access-control-request-method': 'PUT' });
  const { allow, ...said } = preflight.headers;
  assert.deepEqual(
    [preflight.statusCode, said['access-control-allow-methods'], said['access-control-max-age'], allow],
    [204, 'GET, PUT', '86400', undefined],
  );
  // No page of another origin may use one that takes none, which answers the same otherwise.
  await using closed = await createHttpServer({ log: createLogger('test', 'silent') });
  closed.post('/things', async () => ({}));
  const { statusCode, headers } = await closed.inject({ method: 'OPTIONS', url: '/things' });
  assert.deepEqual([statusCode, headers.allow], [204, 'POST']);
  assert.equal(headers['access-control-allow-origin'], undefined);
});

test('S11: a refused value is answered with the values that are taken, an unknown field with the fields', async () => {
  await using app = await createServer();
  const cases: [string, string][] = [
    ['status=foo', 'query.status must be one of running, stopped'],
    ['kind=foo', 'query.kind must be one of a, b'],
    ['one=foo', 'query.one must be this'],
    ['colour=red', 'query has no field "colour"; fields: status, kind, one'],
  ];
  for (const [query, error] of cases)
    assert.equal((await app.inject(`/api/list?${query}`)).json().error, error);
});

test('S15: a body of another content type is answered with what to send', async () => {
  await using app = await createServer();
  const { statusCode, ...response } = await app.inject({
    method: 'POST',
    url: '/api/things',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: '{"a":1}',
  });
  assert.equal(statusCode, 415);
  assert.match(response.json().error, /content-type: application\/json.*curl -H/);
});

test('a client that cannot be understood and keeps its side open loses its connection', async () => {
  await using app = await createServer();
  const { port } = new URL(await listen(app, '127.0.0.1', 0));
  const client = connect({ host: '127.0.0.1', port: Number(port), allowHalfOpen: true });
  client.on('error', () => {}).write('nonsense\r\n\r\n');
  assert.match(String((await once(client, 'data'))[0]), /^HTTP\/1\.1 400 .*INVALID_PARAMETERS/s);
  const count = () =>
    new Promise<number>((resolve, reject) =>
      app.server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
    );
  await until('the server has closed it', count, (open) => open === 0);
  client.destroy();
});

test('what comes behind a request that is under way is not taken for its answer, and ends nothing but its connection', async () => {
  const log = createLogger('test', 'silent');
  await using app = await createHttpServer({ log, socketPaths: ['/socket'] });
  app.get('/socket', async (_request, reply) => upgradeOf(reply) && takeUpgrade(reply).socket.end('taken'));
  let goOn = Promise.withResolvers<void>();
  app.get('/late', async () => {
    await goOn.promise;
    return 'late';
  });
  app.get('/stream', async (_request, reply) => {
    const body = new PassThrough();
    body.write('begun');
    void goOn.promise.then(() => body.end('late'));
    return reply.send(body);
  });
  const { port } = new URL(await listen(app, '127.0.0.1', 0));
  const ask = async (first: string, behind: string) => {
    goOn = Promise.withResolvers();
    const socket = connect({ host: '127.0.0.1', port: Number(port) }).on('error', () => {});
    socket.write(`GET ${first} HTTP/1.1\r\nHost: x\r\n\r\n${behind}`);
    // Whoever asks on another connection is answered behind it.
    await fetch(`http://127.0.0.1:${port}/none`);
    goOn.resolve();
    const said = await buffer(socket).catch(() => Buffer.alloc(0));
    return [...String(said).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  };
  const upgrade = `GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`;
  for (const first of ['/late', '/stream', '/none']) {
    const status = first === '/none' ? 404 : 200;
    assert.deepEqual(await ask(first, upgrade), [status, 426], first);
    assert.deepEqual(await ask(first, 'nonsense\r\n\r\n'), [status], first);
    assert.deepEqual(
      await ask(first, 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n'),
      first === '/none' ? [404] : [],
      first,
    );
  }
});

test('a body that breaks off is no failure of the server, and none of its database', async () => {
  const refused: string[] = [];
  const sink = new PassThrough();
  await using app = await createHttpServer({
    log: pino({ level: 'warn' }, sink),
    observer: { answered: () => {}, letGo: () => {}, refused: (code) => void refused.push(code) },
    translateError: () => new AppError('DATABASE_UNAVAILABLE', 'whatever it is'),
  });
  app.post('/things', async () => ({}));
  const { port } = new URL(await listen(app, '127.0.0.1', 0));
  const begin = (head: string, rest: string) =>
    connect({ host: '127.0.0.1', port: Number(port) })
      .on('error', () => {})
      .end(`POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${head}\r\n\r\n${rest}`)
      .resume();
  begin('Content-Length: 100', '{"a":1}');
  begin('Transfer-Encoding: chunked', '7\r\n{"a":1}\r\n');
  const all = await until(
    'both are refused',
    async () => refused,
    ({ length }) => length >= 2,
  );
  assert.deepEqual([...new Set(all)], ['INVALID_PARAMETERS']);
  assert.equal(sink.read(), null);
});

test('a server that counts no requests has a share of connections for each client all the same', async () => {
  const app = await createHttpServer({ log: createLogger('test', 'silent') });
  const connectFrom = (remoteAddress: string) => {
    const socket = Object.assign(new PassThrough(), { remoteAddress });
    app.server.emit('connection', socket);
    return socket;
  };
  const sockets = Array.from({ length: 4_100 }, () => connectFrom('192.0.2.1'));
  assert.equal(sockets.filter(({ destroyed }) => destroyed).length, 4);
  const others = ['192.0.2.2', '127.0.0.1'].map(connectFrom);
  assert.deepEqual(
    others.map(({ destroyed }) => destroyed),
    [false, false],
  );
  for (const socket of [...sockets, ...others]) socket.destroy();
  await app.close();
});

test('whether a body is coded takes no longer to find out the longer the header is', () => {
  for (const plain of [undefined, '', ' ', 'identity', ' Identity '])
    assert.equal(whyCoded({ 'content-encoding': plain }), null);
  const startUs = process.cpuUsage().user;
  // A space that no parser of headers takes off.
  for (let turn = 0; turn < 50; turn++)
    assert.equal(
      whyCoded({ 'content-encoding': `${'\u00a0'.repeat(15_000)}x` })?.code,
      'UNSUPPORTED_MEDIA_TYPE',
    );
  const spentMs = (process.cpuUsage().user - startUs) / 1_000;
  assert.ok(spentMs < 2_000, `${spentMs} ms`);
});
