import assert from 'node:assert/strict';
import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Sent } from '@skerry/client/request';
import { askOverHttp, askWithin } from './ask.ts';
import { createTestDir } from './testing/run.ts';

let asked: { line: string; length: string | undefined; body: string };
let askedType: string | undefined;
let answer: (response: ServerResponse) => void;
const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  askedType = request.headers['content-type'];
  asked = { line: `${request.method} ${request.url}`, length: request.headers['content-length'], body };
  answer(response);
});
let url = '';
before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const ask = (sent: Partial<Sent> = {}, path = '/a?b=c') =>
  askOverHttp(`${url}${path}`, {
    ...{ method: 'GET', redirect: 'manual', headers: {}, signal: AbortSignal.timeout(10_000) },
    ...sent,
  });

test('it reads an answer as fetch does: status, headers, text', async () => {
  answer = (response) => response.writeHead(404, { 'X-Last-Event': '7' }).end('\uFEFFé');
  const [own, fetched] = await Promise.all([ask(), fetch(`${url}/a?b=c`)]);
  for (const one of [own, fetched]) {
    assert.deepEqual([one.status, one.ok, one.url], [404, false, `${url}/a?b=c`]);
    assert.deepEqual([one.headers.get('x-last-event'), one.headers.get('X-None')], ['7', null]);
    assert.equal(await one.text(), 'é');
  }
});

test('it reads bytes as they are', async () => {
  const bytes = Buffer.from([0xff, 0, 0xef, 0xbb, 0xbf]);
  answer = (response) => response.end(bytes);
  for (const one of [await ask(), await fetch(`${url}/a?b=c`)])
    assert.deepEqual(Buffer.from(await one.arrayBuffer()), bytes);
});

test('a body is sent with its length, whatever the method', async () => {
  answer = (response) => response.end('{}');
  for (const method of ['POST', 'PUT', 'DELETE']) {
    await ask({ method, body: '{"é":1}' });
    assert.deepEqual(asked, { line: `${method} /a?b=c`, length: '8', body: '{"é":1}' });
  }
  await ask({ method: 'POST', body: new Uint8Array([65]) });
  assert.deepEqual(asked, { line: 'POST /a?b=c', length: '1', body: 'A' });
  const form = new FormData();
  form.set('name', 'value');
  await ask({ method: 'POST', body: form });
  assert.match(asked.body, /name="name"\r\n\r\nvalue/);
});

test('a file is sent as fetch sends it, and not by fetch, which waits five minutes for an answer', async (t) => {
  const file = new Blob(['ab', 'c'], { type: 'text/x-test' });
  answer = (response) => response.end('{}');
  await fetch(`${url}/a?b=c`, { method: 'POST', body: file });
  const [byFetch, typeByFetch] = [asked, askedType];
  const fetched = t.mock.method(globalThis, 'fetch');
  await ask({ method: 'POST', body: file });
  assert.deepEqual([asked, askedType], [byFetch, typeByFetch]);
  assert.deepEqual(asked, { line: 'POST /a?b=c', length: '3', body: 'abc' });
  await ask({ method: 'POST', body: file, headers: { 'content-type': 'text/y' } });
  assert.equal(askedType, 'text/y');

  const hasty = createServer((_request, response) => void response.writeHead(413).end('no')).listen(
    0,
    '127.0.0.1',
  );
  await once(hasty, 'listening');
  const { port } = hasty.address() as AddressInfo;
  const large = new Blob([Buffer.alloc(32 * 1024 ** 2)]);
  const sent = { method: 'POST', redirect: 'manual' as const, headers: {}, body: large };
  const refused = await askOverHttp(`http://127.0.0.1:${port}/`, {
    ...sent,
    signal: AbortSignal.timeout(60_000),
  });
  assert.deepEqual([refused.status, await refused.text()], [413, 'no']);
  hasty.closeAllConnections();
  hasty.close();

  await using dir = await createTestDir();
  const path = join(dir.path, 'file');
  await writeFile(path, 'a');
  const changed = await openAsBlob(path);
  await appendFile(path, 'b');
  await assert.rejects(ask({ method: 'POST', body: changed }), { name: 'NotReadableError' });
  assert.equal(fetched.mock.callCount(), 0);
});

test('who takes no more of a file, and keeps the connection, is not waited for as long as for an answer', async () => {
  const sockets: Socket[] = [];
  const deaf = createTcpServer((socket) => void sockets.push(socket.pause()));
  await once(deaf.listen(0, '127.0.0.1'), 'listening');
  const { port } = deaf.address() as AddressInfo;
  const body = new Blob([Buffer.alloc(32 * 1024 ** 2)]);
  const sent = { method: 'POST', redirect: 'manual' as const, headers: {}, body };
  const signal = AbortSignal.timeout(60_000);
  await assert.rejects(askWithin(100, `http://127.0.0.1:${port}/`, { ...sent, signal }), {
    message: 'no more of the file was taken for 0.1 seconds',
  });
  for (const socket of sockets) socket.destroy();
  deaf.close();
});

test('a packed answer is unpacked; a redirect is the answer', async () => {
  answer = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('packed'));
  assert.equal(await (await ask()).text(), 'packed');
  answer = (response) => response.writeHead(307, { location: '/there' }).end();
  const form = new FormData();
  form.set('name', 'value');
  for (const sent of [{}, { method: 'POST', body: 'again' }, { method: 'POST', body: form }]) {
    const { status, headers } = await ask(sent);
    assert.deepEqual([status, headers.get('location')], [307, '/there']);
  }
});

test('it rejects where nobody answers, an answer is cut off, or its time is over', async () => {
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const sent = {
    method: 'GET',
    redirect: 'manual' as const,
    headers: {},
    signal: AbortSignal.timeout(10_000),
  };
  await assert.rejects(askOverHttp(`http://127.0.0.1:${port}`, sent), { code: 'ECONNREFUSED' });
  answer = (response) => {
    response.writeHead(200, { 'content-length': '9' }).write('cut');
    setImmediate(() => response.destroy());
  };
  await assert.rejects(ask(), { code: 'ECONNRESET' });
  const stop = new AbortController();
  answer = (response) => {
    response.writeHead(200, { 'content-length': '9' }).write('slow');
    setImmediate(() => stop.abort());
  };
  await assert.rejects(ask({ signal: stop.signal }), { name: 'AbortError' });
  await assert.rejects(ask({ signal: AbortSignal.abort() }), { name: 'AbortError' });
});
