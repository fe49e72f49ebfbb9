import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { listen } from './listen.ts';
import { createHttpServer } from './server.ts';
import { Turnstile } from './turnstile.ts';

const CROWD = 1_000;
const requestOf = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

test('F9: a question for the health is answered although a crowd came before it', async (t) => {
  const log = createLogger('test', 'fatal');
  const app = await createHttpServer({ log, urgentPaths: ['/health'] });
  let handled = 0;
  let handledBefore: number | undefined;
  app.get('/work', async () => ({ handled: ++handled }));
  app.get('/health', async () => {
    handledBefore = handled;
    return {};
  });
  const { promise: allCame, resolve } = Promise.withResolvers<void>();
  let connections = 0;
  app.server.on('connection', () => {
    if (++connections === CROWD + 1) resolve();
  });
  const port = Number(new URL(await listen(app, '127.0.0.1', 0)).port);
  const sockets = await Promise.all(Array.from({ length: CROWD + 1 }, () => open(port)));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await app.close();
  });
  await allCame;
  const asker = sockets.pop()!;
  const answers = sockets.map((socket) => once(socket, 'data'));
  for (const socket of sockets) socket.write(requestOf('/work'));
  asker.write(requestOf('/health'));
  await once(asker, 'data');
  assert.ok(handledBefore !== undefined && handledBefore < CROWD / 2, `${handledBefore} were handled before`);
  // And the crowd is answered.
  await Promise.all(answers);
  assert.equal(handled, CROWD);
});

test('F9: so many begin in each turn, in their order, and no more wait than may', async () => {
  const turnstile = new Turnstile(2, 3);
  const begun: number[] = [];
  const passed = [1, 2, 3, 4, 5, 6].map((n) => turnstile.pass(() => begun.push(n)));
  assert.deepEqual(
    [begun, passed],
    [
      [1, 2],
      [true, true, true, true, true, false],
    ],
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(begun, [1, 2, 3, 4]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([begun, turnstile.waiting], [[1, 2, 3, 4, 5], 0]);
});

test('F9: who has to wait takes a place, for as long as it waits', async () => {
  const turnstile = new Turnstile(1, 10);
  let places = 2;
  const takePlace = () => {
    if (places === 0) return undefined;
    places--;
    return { release: () => void places++ };
  };
  const passed = [1, 2, 3, 4].map(() => turnstile.pass(() => {}, takePlace));
  assert.deepEqual([passed, places], [[true, true, true, false], 0]);
  while (turnstile.waiting > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(places, 2);
});

test('F9: a client that sends thousands of requests at once leaves places for others', async (t) => {
  const log = createLogger('test', 'fatal');
  const clients = { exempt: ['127.0.0.9'], trustedProxies: [] };
  const limits = {
    ...{ isEnabled: true, perMinute: { general: 1e6, authenticated: 1e6, heavy: 1e6 } },
    ...clients,
  };
  let refused = 0;
  const observer = { answered: () => {}, letGo: () => {}, refused: () => void refused++ };
  const app = await createHttpServer({ log, limits, observer, corsMethods: ['GET'] });
  app.get('/', { config: { rateClass: 'general' } }, async () => 'here');
  const port = Number(new URL(await listen(app, '127.0.0.1', 0)).port);
  const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  t.after(async () => {
    socket.destroy();
    await app.close();
  });
  await once(socket, 'connect');
  // Whole requests come out of one chunk at once.
  const many = 3_000;
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(many));
  const count = (status: string) => text.split(`HTTP/1.1 ${status}`).length - 1;
  while (count('200') + count('429') + count('503') < many) await once(socket, 'data');
  assert.equal(count('503'), 0);
  assert.ok(count('429') > 0, 'all of them were let in');
  assert.ok(count('200') > 2_000);
  // They are told as every other refusal is.
  assert.equal(refused, count('429'));
  for (const field of [
    'x-request-id: ',
    'server: skerry/',
    'access-control-allow-origin: \\*',
    'retry-after: 1',
  ])
    assert.match(text, new RegExp(`HTTP/1.1 429 [^\\r]*\\r\\n(?:[^\\r]+\\r\\n)*${field}`), field);
});
