import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import fc from 'fast-check';
import { startNameServer } from '../testing/dns.ts';
import { AskError, createAsker } from './ask.ts';
import { createReach } from './reach.ts';

const signal = new AbortController().signal;
/** Only what never answers takes this long. */
const OPTIONS = { timeoutMs: 60_000, bodyBytesMax: 1_024, signal };

async function serve(listener: RequestListener, host = '127.0.0.1', port = 0) {
  const server = createServer(listener).listen(port, host);
  await once(server, 'listening');
  return {
    http: server,
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

test('H3: nothing on this machine is asked on a stranger’s word, in whatever spelling', async () => {
  let asked = 0;
  using server = await serve((_request, response) => {
    asked++;
    response.end();
  });
  const asker = createAsker({ mayReach: createReach(false) });
  const hosts = [
    '127.0.0.1',
    'localhost',
    'a.localhost',
    '127.1',
    '0x7f000001',
    '2130706433',
    '0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::127.0.0.1]',
  ];
  for (const host of hosts)
    await assert.rejects(asker.ask(`http://${host}:${server.port}/`, OPTIONS), (error) => {
      assert.ok(error instanceof AskError && error.failure === 'refused', `${host}: ${error}`);
      return true;
    });
  assert.equal(asked, 0);
});

test('H3: a name server that changes its mind leads nobody inside', async () => {
  const visited: string[] = [];
  const listener: RequestListener = (request, response) => {
    visited.push(request.socket.localAddress ?? '');
    response.end();
  };
  // 127.0.0.2 stands for an address that may be asked, 127.0.0.3, where nobody else has the port, for what is inside.
  using outside = await serve(listener, '127.0.0.2');
  using _inside = await serve(listener, '127.0.0.3', outside.port);
  using names = await startNameServer(['127.0.0.2'], ['127.0.0.3']);
  const asker = createAsker({
    mayReach: (address) => address === '127.0.0.2',
    dnsServers: [names.address],
  });
  const ask = () => asker.ask(`http://rebind.test:${outside.port}/`, OPTIONS);
  assert.equal((await ask()).status, 200);
  // One look-up for the connection: there is no second one that could say something else.
  assert.deepEqual([names.asked, visited], [1, ['127.0.0.2']]);
  await assert.rejects(ask(), (error) => error instanceof AskError && error.failure === 'refused');
  assert.deepEqual(visited, ['127.0.0.2']);
});

test('H3: what answers is bounded in time and size, and sends nobody elsewhere', async () => {
  let elsewhere = 0;
  using other = await serve((_request, response) => {
    elsewhere++;
    response.end();
  });
  using server = await serve((request, response) => {
    if (request.url === '/large') response.end(Buffer.alloc(64 * 1_024));
    else if (request.url === '/slow') response.write('.');
    else if (request.url === '/header') response.writeHead(200, { a: 'b'.repeat(20_000) }).end();
    else response.writeHead(302, { location: `http://127.0.0.1:${other.port}/` }).end();
  });
  const asker = createAsker({ mayReach: createReach(true) });
  const ask = (path: string) =>
    asker.ask(`http://127.0.0.1:${server.port}${path}`, {
      ...OPTIONS,
      ...(path === '/slow' ? { timeoutMs: 300 } : {}),
    });
  const failureOf = (path: string) =>
    ask(path).then(
      () => 'answered',
      (error) => (error as AskError).failure,
    );
  assert.deepEqual(await Promise.all(['/large', '/slow', '/header'].map(failureOf)), [
    'too_large',
    'timeout',
    'broken',
  ]);
  assert.deepEqual([(await ask('/')).status, elsewhere], [302, 0]);
});

test('the body goes to nobody who does not say that they take it, and an answer before that is one', async () => {
  const bodies: string[] = [];
  using server = await serve(() => assert.fail('what is asked so has to be taken'));
  server.http.on('checkContinue', async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/refused') return response.writeHead(429).end('no');
    if (request.url === '/reset') return request.socket.destroy();
    if (request.url === '/silent') return;
    response.writeContinue();
    bodies.push(await text(request));
    return response.end('well');
  });
  const asker = createAsker({ mayReach: createReach(true), keepAlive: true });
  const ask = (path: string) =>
    asker
      .ask(`http://127.0.0.1:${server.port}${path}`, {
        ...{ ...OPTIONS, method: 'POST', body: path },
        takeMs: path === '/silent' ? 50 : 60_000,
      })
      .then(
        ({ status, body }) => `${status} ${body.toString()}`,
        (error) => (error as AskError).failure,
      );
  const answers = [];
  for (const path of ['/taken', '/refused', '/reset', '/silent', '/taken/again'])
    answers.push(await ask(path));
  assert.deepEqual(answers, ['200 well', '429 no', 'untaken', 'untaken', '200 well']);
  assert.deepEqual(bodies, ['/taken', '/taken/again']);
  asker.close();
});

test('H3: no URL breaks what asks it', async () => {
  const asker = createAsker({ mayReach: () => false, dnsServers: ['127.0.0.1:9'] });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.ipV4(),
        fc.ipV6().map((address) => `[${address}]`),
      ),
      async (host) => {
        await assert.rejects(asker.ask(`http://${host}/`, OPTIONS), AskError);
      },
    ),
  );
});
