import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Api, errorsOf, NO_PARAMETERS, type Operation, text } from '@skerry/protocol/api/operation';
import { type ErrorCode, LIMITS } from '@skerry/protocol/forms';
import { Type } from '@skerry/protocol/type';
import { createLogger } from '../daemon/log.ts';
import { createHttpServer } from '../http/server.ts';
import { answer, expectAll, type Handlers, type ServeOptions, serve, serveAll } from './serve.ts';

const operation = { method: 'POST', summary: 'x', errors: [] } as const;
const API = {
  plain: { ...operation, path: '/plain', answers: { 200: Type.Unknown() } },
  strict: {
    ...operation,
    path: '/strict',
    body: {
      kind: 'json',
      schema: Type.Object({ n: Type.Optional(Type.Integer()) }, { additionalProperties: false }),
      isStrict: true,
      isOptional: true,
    },
    answers: { 200: Type.Unknown() },
  },
  lax: {
    ...operation,
    path: '/lax',
    body: { kind: 'json', schema: Type.Object({ n: Type.Integer() }), limitBytes: 20 },
    answers: { 200: Type.Unknown() },
  },
  perhaps: {
    ...operation,
    path: '/perhaps',
    body: { kind: 'json', schema: Type.Union([Type.Null(), Type.Object({})]), isOptional: true },
    answers: { 200: Type.Unknown() },
  },
  bytes: {
    ...operation,
    path: '/bytes',
    body: { kind: 'bytes', contentType: 'application/octet-stream', description: 'any', limitBytes: 4 },
    answers: { 200: text('as many letters'), 202: Type.Object({ size: Type.Integer() }) },
  },
  any: {
    ...operation,
    also: ['PUT', 'HEAD'],
    path: '/any/:name/*',
    params: Type.Object({ name: Type.String(), '*': Type.String() }),
    body: { kind: 'bytes', contentType: '*/*', description: 'any', isOptional: true },
    answers: { 200: Type.Unknown() },
  },
  none: {
    ...operation,
    method: 'GET',
    path: '/none',
    query: NO_PARAMETERS,
    answers: { 200: Type.Unknown() },
  },
  some: {
    ...operation,
    method: 'GET',
    path: '/some',
    query: Type.Object({ n: Type.Optional(Type.Integer()), name: Type.Optional(Type.String()) }),
    answers: { 200: Type.Unknown() },
  },
  form: {
    ...operation,
    path: '/form',
    body: { kind: 'form', fields: Type.Object({}) },
    answers: { 200: Type.Unknown() },
  },
  stream: {
    ...operation,
    path: '/stream',
    body: { kind: 'stream', content: { 'text/csv': Type.String() } },
    answers: { 200: Type.Unknown() },
  },
} as const satisfies Api;

const handlers: Handlers<typeof API> = {
  plain: () => ({ fine: true }),
  strict: ({ body }) => body,
  lax: ({ body }) => body,
  perhaps: ({ body }) => body ?? {},
  bytes: ({ body }) =>
    body.length > 2
      ? answer(202, { size: body.length }, { 'x-size': String(body.length) })
      : answer(200, 'x'.repeat(body.length), { 'content-type': 'text/plain' }),
  none: ({ query }) => query,
  some: ({ query }) => query,
  form: () => ({}),
  any: ({ params, body, request }) => ({ ...params, method: request.method, size: body.length }),
  async stream({ body }) {
    let size = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) size += chunk.length;
    return { size };
  },
};

const PARSED: Readonly<Record<string, string>> = {
  [API.stream.path]: 'text/csv',
  [API.form.path]: 'multipart/form-data',
};
const optionsOf = ({ path }: Operation): ServeOptions =>
  path in PARSED
    ? {
        async parsers(scope) {
          scope.addContentTypeParser(PARSED[path]!, (_request, payload, done) => done(null, payload));
        },
      }
    : {};

async function serverOf(add: (app: Awaited<ReturnType<typeof createHttpServer>>) => void) {
  const app = await createHttpServer({ log: createLogger('test', 'silent') });
  expectAll(app, API);
  add(app);
  return app;
}

describe('operations are served as their contract says', async () => {
  const app = await serverOf((server) => serveAll(server, API, handlers, optionsOf));
  const post = async (url: string, payload: string | Buffer, type = 'application/json') => {
    const response = await app.inject({ method: 'POST', url, payload, headers: { 'content-type': type } });
    const isJson = String(response.headers['content-type']).startsWith('application/json');
    return [
      response.statusCode,
      isJson ? response.json<Record<string, unknown>>() : response.payload,
    ] as const;
  };
  const codeOf = async (...request: Parameters<typeof post>) => {
    const [status, body] = await post(...request);
    return [status, (body as { code?: unknown }).code];
  };

  test('a strict body is an object of signed text: nothing is turned into another type', async () => {
    assert.deepEqual(await post('/strict', '{"n":1}', 'text/plain'), [200, { n: 1 }]);
    assert.deepEqual(await post('/strict', ''), [200, {}]);
    assert.deepEqual(await codeOf('/strict', '{"n":"1"}'), [400, 'INVALID_PARAMETERS']);
    assert.deepEqual(await codeOf('/strict', '{"m":1}'), [400, 'UNKNOWN_FIELD']);
    assert.deepEqual(await codeOf('/strict', '{"n":'), [400, 'INVALID_JSON']);
  });

  test('another JSON body is checked by its schema, within its limit', async () => {
    assert.deepEqual(await post('/lax', '{"n":"1"}'), [200, { n: 1 }]);
    assert.deepEqual(await codeOf('/lax', '{"n":"x"}'), [400, 'INVALID_PARAMETERS']);
    assert.deepEqual(await codeOf('/lax', '{"n":1,"more":"than this"}'), [413, 'BODY_TOO_LARGE']);
    assert.deepEqual(await codeOf('/lax', '{"n":1}', 'application/xml'), [415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  test('where a body may be left out, none has any type', async () => {
    for (const url of ['/perhaps', '/strict'])
      for (const type of ['application/json', 'application/x-www-form-urlencoded'])
        assert.deepEqual(await post(url, '', type), [200, {}], `${url} ${type}`);
    assert.deepEqual(await codeOf('/perhaps', 'a=1', 'application/x-www-form-urlencoded'), [
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ]);
    assert.deepEqual(await codeOf('/lax', ''), [400, 'INVALID_JSON']);
  });

  test('bytes come whole, and an answer has its status and header fields', async () => {
    const octets = 'application/octet-stream';
    assert.deepEqual(await post('/bytes', Buffer.from([0, 255]), octets), [200, 'xx']);
    assert.deepEqual(await post('/bytes', Buffer.from([0, 255, 1]), octets), [202, { size: 3 }]);
    assert.deepEqual(await codeOf('/bytes', 'abcde', octets), [413, 'BODY_TOO_LARGE']);
    assert.deepEqual(await codeOf('/bytes', '{}'), [415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  test('several methods may have one handler, and bytes any type or none', async () => {
    const url = '/any/a/b/c';
    const seen = { name: 'a', '*': 'b/c' };
    assert.deepEqual(await post(url, 'xx', 'text/x-own'), [200, { ...seen, method: 'POST', size: 2 }]);
    const put = await app.inject({ method: 'PUT', url });
    assert.deepEqual(put.json(), { ...seen, method: 'PUT', size: 0 });
    assert.equal((await app.inject({ method: 'HEAD', url })).statusCode, 200);
    const got = await app.inject({ method: 'GET', url });
    assert.deepEqual([got.statusCode, got.headers.allow], [405, 'HEAD, POST, PUT']);
  });

  test("a stream is read by its own parser, which is nobody else's, and by no other", async () => {
    assert.deepEqual(await post('/stream', 'a,b', 'text/csv'), [200, { size: 3 }]);
    assert.deepEqual(await codeOf('/stream', '{}'), [415, 'UNSUPPORTED_MEDIA_TYPE']);
    assert.deepEqual(await codeOf('/lax', 'a,b', 'text/csv'), [415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  test('a body of another type is told which ones there are', async () => {
    const told: [string, RegExp][] = [
      ['/strict', /must be application\/json, .*curl -H 'content-type: application\/json'/],
      [
        '/bytes',
        /must be application\/octet-stream, with the header content-type: application\/octet-stream"/,
      ],
      ['/stream', /must be text\/csv,/],
      ['/form', /must be multipart\/form-data, .*curl -F/],
    ];
    for (const [url, words] of told) {
      const { statusCode, body } = await app.inject({
        method: 'POST',
        url,
        payload: 'x',
        headers: { 'content-type': 'image/png' },
      });
      assert.equal(statusCode, 415);
      assert.match(body, words, url);
    }
  });

  test('whatever is wrong with a body, also of an operation that takes none, is a code of its contract', async () => {
    const plain = await Promise.all([
      codeOf('/plain', '{'),
      codeOf('/plain', '<a/>', 'application/xml'),
      codeOf('/plain', Buffer.alloc(LIMITS.jsonBodyBytes + 1, ' ')),
    ]);
    assert.deepEqual(plain, [
      [400, 'INVALID_JSON'],
      [415, 'UNSUPPORTED_MEDIA_TYPE'],
      [413, 'BODY_TOO_LARGE'],
    ]);
    for (const one of Object.values<Operation>(API).filter(({ method }) => method === 'POST')) {
      const url = one.path.replace(':name', 'a').replace('*', 'b');
      for (const [payload, type] of [
        ['{', 'application/json'],
        ['<a/>', 'application/xml'],
        ['x'.repeat(64), 'text/csv'],
      ] as const) {
        const [status, code] = await codeOf(url, payload, type);
        if (Number(status) >= 400)
          assert.ok(errorsOf(one).includes(code as ErrorCode), `${url} ${type}: ${code}`);
      }
    }
  });

  test('a parameter that is given twice is told so, and one that is not there is refused where there are none', async () => {
    const get = async (url: string) => (await app.inject(url)).json<{ code?: string; error?: string }>();
    for (const url of ['/some?n=1&n=1', '/some?name=a&name=b']) {
      const { code, error } = await get(url);
      assert.equal(code, 'INVALID_PARAMETERS');
      assert.match(error!, /^query\.n(ame)? is given 2 times; give it once, and separate values by commas/);
    }
    assert.match((await get('/some?n=x')).error!, /^query\.n must be an integer/);
    assert.deepEqual(await get('/none'), {});
    assert.equal((await get('/none?page=2')).code, 'UNKNOWN_FIELD');
  });

  test('a compressed body is refused as such; only a program gets it as it is', async () => {
    const types: [string, string][] = [
      ['/strict', 'application/json'],
      ['/lax', 'application/json'],
      ['/bytes', 'application/octet-stream'],
      ['/stream', 'text/csv'],
      ['/any/a/b', 'application/json'],
    ];
    const post = (url: string, type: string, coding: string) =>
      app.inject({
        method: 'POST',
        url,
        payload: url === '/bytes' ? 'abc' : gzipSync('{}'),
        headers: { 'content-type': type, 'content-encoding': coding },
      });
    for (const [url, type] of types) {
      const { statusCode, headers, body } = await post(url, type, 'gzip');
      if (url.startsWith('/any')) assert.equal(statusCode, 200);
      else {
        assert.deepEqual([statusCode, headers['accept-encoding']], [415, 'identity'], url);
        assert.match(body, /must not be compressed.*UNSUPPORTED_MEDIA_TYPE/);
      }
    }
    for (const coding of ['identity', ' Identity ', ''])
      assert.equal((await post('/bytes', 'application/octet-stream', coding)).statusCode, 202);
  });
});

test('a server that does not serve exactly its contract does not start', async () => {
  const { bytes, ...others } = API;
  const { bytes: _, ...otherHandlers } = handlers;
  const forgetful = await serverOf((app) => serveAll(app, others, otherHandlers));
  await assert.rejects(async () => forgetful.ready(), /contract: bytes is not served/);
  const talkative = await serverOf((app) => {
    serveAll(app, API, handlers);
    app.get('/more', () => ({}));
    serve(app, { ...bytes, path: '/again' }, () => 'x');
  });
  await assert.rejects(
    async () => talkative.ready(),
    /contract: GET \/more is in no table; .*POST \/again is in no table/,
  );
});
