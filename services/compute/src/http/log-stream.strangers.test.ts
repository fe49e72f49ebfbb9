import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { createSigner, generatePrivateKey, OwnerPass, type Signer } from '@skerry/client';
import { createHttpServer, createLogger, type HttpServer, listen } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { OPERATION_WINDOW_MS } from '@skerry/protocol';
import { WebSocket } from 'ws';
import { ConsoleLog } from '../instances/console/console-log.ts';
import { OwnerAccess } from '../owner/access.ts';
import { Replays } from '../owner/replays.ts';
import { inDirectory } from '../testing/directory.ts';
import { addLogStream, LOG_STREAM_PATHS, listSlowest } from './log-stream.ts';

const log = createLogger('test', 'silent');
const ID = 'c'.repeat(64);
const pathOf = (id: string) => `/control/machine/${id}/stream_logs`;
const PATH = pathOf(ID);
const NODE = { domain: '127.0.0.1', nodeId: 'a'.repeat(64) };
const owner = createSigner(generatePrivateKey());
const workerOf = ({ address }: Signer) => ({
  record: { wanted: { owner: address }, status: { phase: 'running' } },
  console: { read: async () => [], listen: () => () => {} },
});
const worker = workerOf(owner);
/** Machines of others. */
const others = new Map<string, ReturnType<typeof workerOf>>();

let app: HttpServer;
let url: string;
const sockets: WebSocket[] = [];
/** RFC 6455, section 7.4.1: a policy was violated. */
const REFUSED = 1008;
/** Until the first frame, and until the other end has answered a close. */
const [FIRST_FRAME_MS, CLOSE_MS] = [3_000, 1_000];
/** Between two questions whether anybody is there. */
const PING_MS = 30_000;

async function openApp(): Promise<void> {
  app = await createHttpServer({ log, socketPaths: LOG_STREAM_PATHS });
  const access = new OwnerAccess({
    coreUrl: 'http://127.0.0.1:1',
    domain: () => NODE.domain,
    nodeId: NODE.nodeId,
    replays: new Replays({ windowMs: OPERATION_WINDOW_MS }),
    now: Date.now,
  });
  addLogStream(app, {
    ...{
      instances: { find: (ref: string) => others.get(ref) ?? worker } as never,
      programs: undefined,
      access,
      log,
    },
    // Loopback is one address: a client is who its header says.
    clientOf: ({ headers }) => ({
      address: '127.0.0.1',
      key: String(headers['x-client']),
      isExempt: false,
      isRelayed: false,
    }),
  });
  url = await listen(app, '127.0.0.1', 0);
}
beforeEach(openApp);
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await app.close();
});

/** @returns the open socket, or the status that it was refused with */
function connect(client: string, id = ID): Promise<WebSocket | number> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${pathOf(id)}`, {
    headers: { 'x-client': client },
  });
  sockets.push(socket);
  return new Promise((resolve) => {
    socket.once('open', () => resolve(socket));
    socket.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
    socket.on('error', () => {});
  });
}

let nowMs = 0;
async function follow(
  client: string,
  by: Signer = owner,
  id = ID,
): Promise<{ socket: WebSocket; status: string }> {
  const socket = await connect(client, id);
  assert.ok(socket instanceof WebSocket, `refused with ${String(socket)}`);
  // Each counts once: no two are signed for the same time.
  nowMs = Math.max(Date.now(), nowMs + 1);
  const pass = await OwnerPass.create(by, NODE, nowMs);
  const auth = await pass.sign({ method: 'GET', path: pathOf(id) }, nowMs);
  const said = once(socket, 'message');
  socket.send(JSON.stringify({ auth }));
  const [data] = (await said) as [Buffer];
  return { socket, status: (JSON.parse(String(data)) as { status: string }).status };
}

test('M5: who has not proved anything has few places, and those of many addresses are nobody else’s', async (context) => {
  // Nobody is let go for want of time, however long it takes to fill all places.
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const reader = await follow('owner');
  assert.equal(reader.status, 'connected');
  const hoard = await Promise.all(Array.from({ length: 8 }, () => connect('one stranger')));
  assert.deepEqual(hoard.map((one) => (typeof one === 'number' ? one : 101)).sort(), [
    ...Array(4).fill(101),
    ...Array(4).fill(429),
  ]);
  for (let index = 0; index < 320; index++) await connect(`stranger ${index % 80}`);
  // The places of strangers are taken; owners come and stay.
  for (let index = 0; index < 3; index++) assert.equal((await follow(`new ${index}`)).status, 'connected');
  assert.equal(reader.socket.readyState, WebSocket.OPEN);
});

/** What a stream said before it was closed, and with which code. */
async function endOf(socket: WebSocket): Promise<{ reason: string; code: number }> {
  let reason = '';
  socket.on('message', (data) => {
    reason = (JSON.parse(String(data)) as { reason: string }).reason;
  });
  const [code] = (await once(socket, 'close')) as [number];
  return { reason, code };
}

test('M5: who says nothing, or nothing that is true, is let go soon', async (context) => {
  const liar = (await connect('liar')) as WebSocket;
  const lied = endOf(liar);
  liar.send('{"auth":{}}');
  assert.deepEqual([(await lied).code, /sign/i.test((await lied).reason)], [REFUSED, true]);

  context.mock.timers.enable({ apis: ['setTimeout'] });
  const quiet = (await connect('quiet')) as WebSocket;
  const said = endOf(quiet);
  // One that never answers a close gives its place back, too.
  const raw = request(`${url}${PATH}`, {
    headers: {
      ...{ 'x-client': 'raw', connection: 'Upgrade', upgrade: 'websocket' },
      ...{ 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
    },
  });
  raw.end();
  const [, socket] = (await once(raw, 'upgrade')) as [unknown, Socket];
  context.mock.timers.tick(FIRST_FRAME_MS);
  const late = 'the first frame, {"auth": {...}}, did not come within 3 s';
  assert.deepEqual(await said, { reason: late, code: REFUSED });
  const [frame] = (await once(socket, 'data')) as [Buffer];
  assert.match(String(frame), /did not come within 3 s/);
  const closed = once(socket.resume(), 'close');
  context.mock.timers.tick(CLOSE_MS);
  await closed;
});

/** Connections that the server has open. */
const countOpen = () =>
  new Promise<number>((resolve, reject) =>
    app.server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
  );

test('M5: who leaves while the log is read takes no listener of it', async ({ mock }) => {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<never[]>()];
  let listeners = 0;
  mock.method(worker.console, 'read', () => {
    begun.resolve();
    return ended.promise;
  });
  mock.method(worker.console, 'listen', () => {
    listeners++;
    return () => listeners--;
  });
  const { socket } = await follow('hasty');
  await begun.promise;
  socket.terminate();
  await until('the server has closed it', countOpen, (open) => open === 0);
  ended.resolve([]);
  await new Promise(setImmediate);
  assert.equal(listeners, 0);
});

test('whoever follows a machine hears what becomes of it, and the end of the stream when it has left the node', ({
  mock,
}) =>
  inDirectory(async (directory) => {
    const by = createSigner(generatePrivateKey());
    const id = 'e'.repeat(64);
    const console = new ConsoleLog(directory, Date.now);
    const listen = console.listen.bind(console);
    const listening = Promise.withResolvers<void>();
    mock.method(console, 'listen', (...args: Parameters<typeof listen>) => {
      listening.resolve();
      return listen(...args);
    });
    others.set(id, { ...workerOf(by), console } as never);
    const { socket } = await follow('reader', by, id);
    await listening.promise;
    const said: object[] = [];
    socket.on('message', (data) => said.push(JSON.parse(String(data))));
    const ended = once(socket, 'close');
    await console.append(Buffer.from('a word\n'));
    for (const text of ['the instance is stopping', 'the instance is stopping', 'the instance is stopped'])
      console.note(text);
    console.end();
    const [code, reason] = (await ended) as [number, Buffer];
    assert.deepEqual([code, String(reason)], [1000, 'it is not on this node any more']);
    assert.deepEqual(said, [
      { type: 'stdout', message: 'a word' },
      { type: 'system', message: 'the instance is stopping' },
      { type: 'system', message: 'the instance is stopped' },
    ]);
    assert.deepEqual(
      (await console.read(10)).map(({ text }) => text),
      ['a word'],
      "the node's words are not the guest's",
    );
  }));

test('who asks for the log of a machine as it leaves the node hears the end of it, too', ({ mock }) =>
  inDirectory(async (directory) => {
    const by = createSigner(generatePrivateKey());
    const id = 'f'.repeat(64);
    const console = new ConsoleLog(directory, Date.now);
    const read = console.read.bind(console);
    mock.method(console, 'read', async (limit: number) => {
      const lines = await read(limit);
      console.end();
      return lines;
    });
    others.set(id, { ...workerOf(by), console } as never);
    const { socket } = await follow('late', by, id);
    const [code] = (await once(socket, 'close', { signal: AbortSignal.timeout(10_000) })) as [number];
    assert.equal(code, 1000);
  }));

test('M5: an owner has a share of readers, from whatever addresses', async () => {
  const statuses: string[] = [];
  for (let index = 0; index < 18; index++) statuses.push((await follow(`address ${index}`)).status);
  assert.deepEqual(statuses, [...Array(16).fill('connected'), 'failed', 'failed']);
});

test('M5: owners with many readers shut out none that has none', async () => {
  const hoards = Array.from({ length: 16 }, (_, index) => ({
    by: createSigner(generatePrivateKey()),
    id: index.toString(16).padStart(64, '0'),
  }));
  const readers: WebSocket[] = [];
  for (const { by, id } of hoards) {
    others.set(id, workerOf(by));
    for (let index = 0; index < 16; index++) readers.push((await follow(`of ${id}`, by, id)).socket);
  }
  const ended = once(readers[0]!, 'close');
  assert.equal((await follow('the owner')).status, 'connected');
  const [code, reason] = (await ended) as [number, Buffer];
  assert.deepEqual([code, String(reason)], [1013, 'the place goes to an owner that has none']);
  // Who has some already takes nobody's.
  const again = await follow('one of many', hoards[0]!.by, hoards[0]!.id);
  assert.equal(again.status, 'failed');
  assert.equal(readers.filter(({ readyState }) => readyState === WebSocket.OPEN).length, 255);
});

test('a connection that is refused and breaks ends nothing, and one that is kept open is closed', async () => {
  const ask = async () => {
    const socket = connectTcp({ host: '127.0.0.1', port: Number(new URL(url).port), allowHalfOpen: true });
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    return socket;
  };
  for (const breaks of [async () => {}, (socket: Socket) => once(socket, 'data')]) {
    const socket = await ask();
    await breaks(socket);
    socket.resetAndDestroy();
  }
  const kept = await ask();
  assert.match(String((await once(kept, 'data'))[0]), /^HTTP\/1\.1 400 /);
  await until('the server has closed them all', countOpen, (open) => open === 0);
  kept.destroy();
});

test('M5: a reader that vanished without a word gives its place back', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  await app.close();
  await openApp();
  const [there, gone] = [(await follow('there')).socket, (await follow('gone')).socket];
  gone.pause();
  for (let round = 0; round < 2; round++) {
    const asked = once(there, 'ping');
    context.mock.timers.tick(PING_MS);
    await asked;
    // The answer is read before all that is said later.
    await follow(`later ${round}`);
  }
  const closed = once(gone, 'close');
  gone.resume();
  await closed;
  assert.equal(there.readyState, WebSocket.OPEN);
});

test('where readers have too much unread together, those with the most are let go', () => {
  const readers = [1, 5, 0, 3].map((bufferedAmount) => ({ bufferedAmount }));
  const goneOf = (bytesMax: number) =>
    listSlowest(readers, bytesMax).map(({ bufferedAmount }) => bufferedAmount);
  assert.deepEqual(
    [goneOf(9), goneOf(8), goneOf(4), goneOf(3), goneOf(0)],
    [[], [5], [5], [5, 3], [5, 3, 1]],
  );
});
