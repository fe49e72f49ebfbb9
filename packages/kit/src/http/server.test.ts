import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { Type } from '@skerry/protocol/type';
import { createLogger } from '../daemon/log.ts';
import { listen } from './listen.ts';
import { createHttpServer } from './server.ts';

const log = createLogger('test', 'silent');

test('every failure has our form; what was not foreseen says nothing of the inside', async (t) => {
  const app = await createHttpServer({ log, corsMethods: ['GET'], bodyLimitBytes: 100 });
  t.after(() => app.close());
  app.get('/known', () => {
    throw new AppError('NOT_PERMITTED', 'no', { details: { why: 1 } });
  });
  app.get('/bug', () => {
    throw new TypeError('secret of the inside');
  });
  app.get(
    '/typed',
    {
      schema: {
        querystring: Type.Object({ n: Type.Integer({ maximum: 3 }) }, { additionalProperties: false }),
      },
    },
    async ({ query }) => query,
  );
  app.get('/part/:name', async () => ({}));
  app.get('/away', async () => {
    throw new AppError('DATABASE_UNAVAILABLE', 'gone');
  });
  app.get('/busy', async () => {
    throw new AppError('OVERLOADED', 'full');
  });
  app.get('/limited', async () => {
    throw new AppError('RATE_LIMITED', 'too many');
  });
  app.post('/body', async () => ({}));
  const answer = async (url: string, payload?: string) => {
    const response = await app.inject({
      url,
      method: payload === undefined ? 'GET' : 'POST',
      ...(payload === undefined ? {} : { payload, headers: { 'content-type': 'application/json' } }),
    });
    return [response.statusCode, response.json()] as const;
  };
  assert.deepEqual(await answer('/known'), [
    403,
    { error: 'no', status: 'error', code: 'NOT_PERMITTED', details: { why: 1 } },
  ]);
  const [status, body] = await answer('/bug');
  assert.deepEqual([status, body.code, JSON.stringify(body).includes('inside')], [500, 'INTERNAL', false]);
  assert.deepEqual((await answer('/typed?n=3'))[1], { n: 3 });
  assert.equal((await answer('/typed?n=4'))[1].code, 'INVALID_PARAMETERS');
  assert.match((await answer('/typed?n=1&m=2'))[1].error, /"m"/);
  assert.equal((await answer('/body', '{'))[1].code, 'INVALID_JSON');
  assert.match((await answer('/body', '['.repeat(70)))[1].error, /more than 64 levels at character 64/);
  assert.deepEqual((await answer('/body', `"${'x'.repeat(200)}"`))[0], 413);
  assert.equal((await answer('/none'))[1].code, 'ROUTE_NOT_FOUND');
  for (const path of ['/%zz', `/part/${'x'.repeat(5_000)}`])
    assert.equal((await answer(path))[1].code, 'INVALID_PARAMETERS');
  for (const [path, seconds] of [
    ['/away', '2'],
    ['/busy', '1'],
    ['/limited', '1'],
  ] as const)
    assert.equal((await app.inject({ url: path })).headers['retry-after'], seconds);
  for (const url of ['/none', '/%zz']) {
    const cors = await app.inject({ url, headers: { origin: 'https://page.example' } });
    assert.equal(cors.headers['access-control-allow-origin'], '*', url);
    assert.equal(cors.headers['access-control-expose-headers'], '*', url);
  }
  const cors = await app.inject({ url: '/none' });
  assert.match(String(cors.headers.server), /^skerry\//);
});

test('what is not HTTP, and heads that are too large, get our form too', async (t) => {
  const app = await createHttpServer({ log });
  t.after(() => app.close());
  const url = new URL(await listen(app, '127.0.0.1', 0));
  const send = (bytes: string) => {
    const socket = connect(Number(url.port), '127.0.0.1');
    socket.end(bytes);
    return text(socket);
  };
  assert.match(await send('nonsense\r\n\r\n'), /^HTTP\/1.1 400 [\s\S]*"code":"INVALID_PARAMETERS"/);
  assert.match(
    await send(`GET / HTTP/1.1\r\nHost: ${'h'.repeat(100_000)}\r\n\r\n`),
    /^HTTP\/1.1 431 [\s\S]*"code":"HEADERS_TOO_LARGE"/,
  );
  const refused = /^HTTP\/1.1 400 [\s\S]*"code":"INVALID_PARAMETERS"/;
  assert.match(await send('GET / HTTP/1.1\r\n\r\n'), refused);
  assert.match(await send('GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n'), refused);
  assert.match(await send('CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n'), refused);
  // An old client names no host, and an expectation that nobody knows is nothing to fail for.
  const answered = /^HTTP\/1.1 404 [\s\S]*"code":"ROUTE_NOT_FOUND"/;
  assert.match(await send('GET / HTTP/1.0\r\n\r\n'), answered);
  assert.match(await send('GET / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n'), answered);
});

test('a request gets one answer, whatever its body turns out to be; behind a body without an end nothing is read', async (t) => {
  const app = await createHttpServer({ log });
  t.after(() => app.close());
  let calls = 0;
  app.post('/answered', async () => ({ calls: ++calls }));
  const url = new URL(await listen(app, '127.0.0.1', 0));
  const send = async (coding: string, body: string) => {
    const socket = connect(Number(url.port), '127.0.0.1');
    socket.end(`POST /answered HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ${coding}\r\n\r\n${body}`);
    const said = await text(socket);
    return { said, statuses: [...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status)) };
  };
  const next = 'POST /answered HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n';
  for (const coding of ['xchunked', 'gzip', 'chunked, identity', 'gzip, chunked']) {
    const { said, statuses } = await send(coding, `0\r\n\r\n${next}`);
    assert.deepEqual(statuses, [400], `${coding}: ${said}`);
    assert.match(said, /^connection: close\r$[\s\S]*"code":"INVALID_PARAMETERS"/im);
  }
  assert.equal(calls, 0);
  assert.deepEqual((await send('Chunked', `0\r\n\r\n${next}`)).statuses, [415, 200]);
  assert.deepEqual((await send('chunked', 'x\r\n')).statuses, [415]);
});
