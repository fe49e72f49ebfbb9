import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { answerableHeaders, callHeaders, variablesOf } from './http-fields.ts';

test('whatever a program gives as its header can be written', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string()), (headers) => {
      const response = new ServerResponse({
        method: 'GET',
        httpVersionMajor: 1,
        httpVersionMinor: 1,
      } as never);
      for (const [name, value] of Object.entries(answerableHeaders(headers))) response.setHeader(name, value);
    }),
  );
});

test('an answer with as much of a header as a program likes is read all the same: what is too much is left out', async () => {
  const headers = {
    ...{ 'content-type': 'text/plain', 'x-first': '1' },
    ...Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`x-${index}`, 'v'.repeat(2_000)])),
  };
  const server = createServer((_request, response) =>
    response.writeHead(200, answerableHeaders(headers)).end('ok'),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    assert.equal(await answer.text(), 'ok');
    assert.deepEqual([answer.headers.get('x-first'), answer.headers.get('x-0')], ['1', 'v'.repeat(2_000)]);
    assert.equal(answer.headers.get('x-199'), null);
  } finally {
    server.close();
  }
});

test("what is the connection's or the node's own is not the program's to say, nor to hear", () => {
  const answered = answerableHeaders({
    ...{ 'Content-Type': 'text/html', 'X-Own': 'a', 'Set-Cookie': 'a=b', Server: 'x', 'Content-Length': '9' },
    ...{
      'Transfer-Encoding': 'chunked',
      'Net-Program-Outcome': 'answered',
      'Access-Control-Allow-Origin': 'x',
    },
    'x-split': 'a\r\nb: c',
    // A browser would tell their maker of every address of the node that is asked for, other programs' as well.
    ...{ NEL: '{"report_to":"x","max_age":1,"success_fraction":1}', 'Report-To': '{"group":"x"}' },
    'Alt-Svc': 'h2="elsewhere.example:443"',
  });
  assert.deepEqual(answered, { 'content-type': 'text/html', 'x-own': 'a' });
  assert.deepEqual(
    callHeaders({ cookie: 'a', connection: 'close', accept: '*/*', 'x-a': ['b', 'c'] as never }),
    {
      accept: '*/*',
      'x-a': 'b, c',
    },
  );
});

test('variables are the object in the body, else the query', () => {
  assert.deepEqual(variablesOf(Buffer.from('{"a":1}'), 'b=2'), { a: 1 });
  assert.deepEqual(variablesOf(Buffer.from('[1]'), 'b=2&c=%20'), { b: '2', c: ' ' });
  assert.deepEqual(variablesOf(Buffer.alloc(0), ''), {});
  const deep = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
  assert.ok(
    isDeepStrictEqual(variablesOf(Buffer.from(deep), 'b=2'), { b: '2' }),
    'none is too deep to be written',
  );
});
