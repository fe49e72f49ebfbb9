import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { type Api, defaulted } from '@skerry/protocol/api/operation';
import type { AppError } from '@skerry/protocol/forms';
import { Type } from '@skerry/protocol/type';
import { call, callRaw, urlOfCall } from './call.ts';
import { askForFile } from './files/raw-file.ts';
import { type RequestOptions, request } from './request.ts';

const API = {
  find: {
    method: 'GET',
    path: '/api/v0/things/:name',
    summary: 'A thing',
    params: Type.Object({ name: Type.String() }),
    query: Type.Object({ page: defaulted(Type.Integer(), 1), mark: Type.Optional(Type.String()) }),
    answers: {
      200: Type.Object({ size: Type.Object({ bytes: Type.Integer() }, { additionalProperties: false }) }),
      503: Type.Object({ size: Type.Null() }),
    },
    errors: ['FILE_NOT_FOUND'],
  },
  add: {
    method: 'POST',
    path: '/api/v0/things',
    summary: 'Adds one',
    body: { kind: 'json', schema: Type.Object({ name: Type.String() }) },
    answers: { 200: Type.Object({ added: Type.Unknown() }) },
    errors: [],
  },
  read: {
    method: 'GET',
    path: '/files/:hash/*',
    summary: 'What lies below',
    params: Type.Object({ hash: Type.String(), '*': Type.String() }),
    answers: { 200: Type.Null() },
    errors: [],
  },
} as const satisfies Api;

let answered: { status: number; body: string } = { status: 200, body: '' };
let asked: { line: string; type: string | undefined; body: string };
const server = createServer(async (request: IncomingMessage, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  asked = { line: `${request.method} ${request.url}`, type: request.headers['content-type'], body };
  response.writeHead(answered.status, { 'content-type': 'application/json' }).end(answered.body);
});
let url = '';
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const find = (status: number, body: unknown) => {
  answered = { status, body: typeof body === 'string' ? body : JSON.stringify(body) };
  return call(url, API.find, { params: { name: 'a/b c' }, query: { mark: '&' } });
};

test('the parts of a request stand where the operation has them', async () => {
  assert.deepEqual(await find(200, { size: { bytes: 1 } }), { size: { bytes: 1 } });
  assert.equal(asked.line, 'GET /api/v0/things/a%2Fb%20c?mark=%26');
  answered = { status: 200, body: '{"added":[1]}' };
  assert.deepEqual(await call(url, API.add, { body: { name: 'é' } }), { added: [1] });
  assert.deepEqual(asked, { line: 'POST /api/v0/things', type: 'application/json', body: '{"name":"é"}' });
  assert.equal(
    urlOfCall('http://x/', API.read, { params: { hash: 'h', '*': 'a b/c?' } }),
    'http://x/files/h/a%20b/c%3F',
  );
});

test('fields that a newer service answers are let through, anywhere', async () => {
  const newer = { size: { bytes: 1, blocks: 2 }, colour: 'red' };
  assert.deepEqual(await find(200, newer), newer);
});

test('another form than the contract has is an error that names the field', async () => {
  await assert.rejects(find(200, { size: { bytes: 'many' } }), {
    code: 'UNEXPECTED_ANSWER',
    message: /things\/a%2Fb%20c\?mark=%26: the answer.size.bytes must be an integer/,
  });
  for (const body of ['<html>', 'null', '[]', '{}', '{"size":null}'])
    await assert.rejects(find(200, body), { code: 'UNEXPECTED_ANSWER' });
});

test('a status that is an answer is one, also where it is no success; a refusal is thrown', async () => {
  assert.deepEqual(await find(503, { size: null }), { size: null });
  const refusal = { error: 'gone', status: 'error', code: 'FILE_NOT_FOUND' };
  await assert.rejects(find(404, refusal), { code: 'FILE_NOT_FOUND', message: 'gone' });
  await assert.rejects(find(503, { ...refusal, code: 'OVERLOADED' }), { code: 'OVERLOADED' });
  await assert.rejects(find(502, '<html>'), { code: 'UPSTREAM_UNAVAILABLE' });
  await assert.rejects(find(204, ''), { code: 'UNEXPECTED_ANSWER' });
});

test('a request goes where its redirect leads only if that is the same service; a file that its hash proves also elsewhere by https', async () => {
  const lines: string[] = [];
  let location = '';
  const redirecting = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    lines.push(`${request.method} ${request.url} ${body}`);
    if (request.url === '/moved') response.end('{"added":1,"size":{"bytes":1}}');
    else response.writeHead(308, { location }).end();
  }).listen(0, '127.0.0.1');
  await once(redirecting, 'listening');
  const { port } = redirecting.address() as AddressInfo;
  const at = `http://127.0.0.1:${port}`;
  const add = () => call(at, API.add, { body: { name: 'a' } });
  const ask = () => call(at, API.find, { params: { name: 'a' } });
  const read = () => callRaw(at, API.read, { params: { hash: 'h', '*': '' } }, { isKnownByHash: true });
  try {
    location = '/moved';
    await add();
    const sent = 'POST /api/v0/things {"name":"a"}';
    assert.deepEqual(lines.splice(0), [sent, 'POST /moved {"name":"a"}']);
    await ask();
    assert.equal(lines.pop(), 'GET /moved ');
    await (await read()).body?.cancel();
    assert.equal(lines.pop(), 'GET /moved ');
    asked = { line: 'none', type: undefined, body: '' };
    // To another service of the machine, to another machine, to nowhere.
    for (const elsewhere of [`${url}/x`, 'http://core.example/', 'https://127.0.0.1:9/', 'http://']) {
      location = elsewhere;
      for (const one of [add, ask])
        await assert.rejects(one(), { code: 'UNEXPECTED_ANSWER', message: /redirects.* to no other/ });
    }
    assert.equal(asked.line, 'none');
    for (const elsewhere of ['http://core.example/', 'ftp://127.0.0.1/', 'http://']) {
      location = elsewhere;
      await assert.rejects(read(), { code: 'UNEXPECTED_ANSWER', message: /redirects.* elsewhere by https/ });
    }
    answered = { status: 200, body: 'a file' };
    location = `${url}/x`;
    assert.equal(await (await read()).text(), 'a file');
    // Nobody is there.
    location = 'https://127.0.0.1:9/';
    await assert.rejects(read(), { code: 'UPSTREAM_UNAVAILABLE', message: /127.0.0.1:9 does not answer/ });
    location = '/again';
    lines.length = 0;
    await assert.rejects(add(), { code: 'UPSTREAM_UNAVAILABLE', message: /returned 308/ });
    assert.deepEqual(lines, [sent, ...Array(3).fill('POST /again {"name":"a"}')]);
  } finally {
    redirecting.closeAllConnections();
    redirecting.close();
  }
});

test('who asks by https where no TLS is spoken is told so', async () => {
  const plain = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
  await once(plain, 'listening');
  try {
    const { port } = plain.address() as AddressInfo;
    await assert.rejects(request(`https://127.0.0.1:${port}/`), {
      code: 'UPSTREAM_UNAVAILABLE',
      message: /does not answer \(it speaks no TLS: its address may begin with http:\)/,
    });
  } finally {
    plain.closeAllConnections();
    plain.close();
  }
});

test('a file comes from the node itself where that would send to what is not to be asked', async () => {
  const conditions: (string | undefined)[] = [];
  const node = createServer(({ headers }, response) => {
    conditions.push(headers['if-none-match']);
    if (headers['if-none-match']) response.end('a file');
    else response.writeHead(307, { location: 'http://store.example/file' }).end();
  }).listen(0, '127.0.0.1');
  await once(node, 'listening');
  try {
    const { port } = node.address() as AddressInfo;
    const response = await askForFile(`http://127.0.0.1:${port}`, 'h', {});
    assert.equal(await response.text(), 'a file');
    assert.deepEqual(conditions, [undefined, '"elsewhere"']);
  } finally {
    node.closeAllConnections();
    node.close();
  }
});

test('the rest of a file is asked for by its first byte, wherever it is', async () => {
  const ranges: (string | undefined)[] = [];
  const node = createServer(({ headers, url }, response) => {
    ranges.push(headers.range);
    if (url?.endsWith('/moved')) response.writeHead(307, { location: '/file' }).end();
    else response.writeHead(headers.range ? 206 : 200).end('le');
  }).listen(0, '127.0.0.1');
  await once(node, 'listening');
  try {
    const { port } = node.address() as AddressInfo;
    for (const firstByte of [4, 0]) {
      const response = await askForFile(`http://127.0.0.1:${port}`, 'moved', {}, firstByte);
      assert.equal(await response.text(), 'le');
    }
    assert.deepEqual(ranges, ['bytes=4-', 'bytes=4-', undefined, undefined]);
  } finally {
    node.closeAllConnections();
    node.close();
  }
});

test('that nobody answered in time is said once: a time limit is no cause that a log would write out, nor what a user broke off', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const at = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const refused = (options: RequestOptions) =>
    request(at, options).then(
      () => assert.fail('nobody answers'),
      ({ code, message, cause, details }: AppError) => ({ code, message, cause, details }),
    );
  const late = { code: 'UPSTREAM_UNAVAILABLE', cause: undefined, details: { late: true } };
  try {
    const message = `${at} does not answer (no answer within 50 ms)`;
    assert.deepEqual(await refused({ timeoutMs: 50 }), { ...late, message });
    // Whoever asks for many things has a limit of their own for all of them.
    assert.deepEqual(await refused({ signal: AbortSignal.timeout(50) }), {
      ...late,
      message: `${at} does not answer (no answer in the time that it was given)`,
    });
    const user = new AbortController();
    const left = request(at, { signal: user.signal });
    user.abort();
    await assert.rejects(left, user.signal.reason as Error);
  } finally {
    silent.closeAllConnections();
    silent.close();
  }
});
