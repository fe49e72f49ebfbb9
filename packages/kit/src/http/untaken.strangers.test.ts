import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { until } from '../testing/until.ts';
import { listen } from './listen.ts';
import { createHttpServer } from './server.ts';
import { timesOf } from './untaken.ts';

/** More than the buffers of two sockets hold. */
const MUCH_BYTES = 32 * 1024 * 1024;
/** How long a connection waits for its next request; Node gives it one second more. */
const KEPT_MS = 66_000;
/** More than a test may take: only what the test does itself brings its end about. */
const NEVER_MS = 10 * 60_000;

interface Line {
  readonly msg: string;
}

const ROUTE = { config: { rateClass: 'unlimited' } } as const;
/** Nobody asks too often, and no address is one of our own but these. */
const limitsOf = (trustedProxies: readonly string[]) => ({
  ...{ isEnabled: false, perMinute: { general: 1, authenticated: 1, heavy: 1 } },
  ...{ exempt: [], trustedProxies },
});

async function open(takingMs: number, trustedProxies: readonly string[] = []) {
  const lines: Line[] = [];
  const log = createLogger('test', 'debug', { write: (text: string) => void lines.push(JSON.parse(text)) });
  const app = await createHttpServer({ log, takingMs, limits: limitsOf(trustedProxies) });
  const answers: ServerResponse[] = [];
  const sources: Readable[] = [];
  const release = Promise.withResolvers<void>();
  app.addHook('onRequest', async (_request, reply) => void answers.push(reply.raw));
  app.get('/whole', ROUTE, async () => Buffer.alloc(MUCH_BYTES));
  app.get('/stream', ROUTE, async (_request, reply) => {
    const source = new Readable({ read() {} });
    sources.push(source);
    return reply.type('application/octet-stream').send(source);
  });
  app.get('/late', ROUTE, async () => {
    await release.promise;
    return {};
  });
  const port = Number(new URL(await listen(app, '127.0.0.1', 0)).port);
  return {
    ...{ app, lines, answers, sources, release, port },
    async [Symbol.asyncDispose]() {
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

async function get(port: number, path: string): Promise<IncomingMessage> {
  const asked = ask({ port, path, agent: false })
    .on('error', () => {})
    .end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return answer.on('error', () => {});
}

test('an answer of which nothing is taken is ended, whole or a stream, and told once', async () => {
  await using world = await open(50);
  const { port, answers, sources, lines } = world;
  const whole = await get(port, '/whole');
  const asked = get(port, '/stream');
  await until('the stream is asked for', () => sources.length === 1);
  sources[0]!.push(Buffer.alloc(MUCH_BYTES));
  const stream = await asked;
  await until('both are ended', () => answers.length === 2 && answers.every(({ destroyed }) => destroyed));
  await until('what the stream reads from is let go of', () => sources[0]!.destroyed);
  assert.equal(lines.filter(({ msg }) => /nothing was taken/.test(msg)).length, 2);
  for (const answer of [whole, stream]) answer.destroy();
});

test('what comes slowly is waited for, and no answer behind another is held to its time', async () => {
  await using world = await open(NEVER_MS);
  const { port, answers, sources, release } = world;
  const socket: Socket = connect(port, '127.0.0.1');
  for (const path of ['/stream', '/late']) socket.write(`GET ${path} HTTP/1.1\r\nhost: here\r\n\r\n`);
  await until('both are asked for', () => answers.length === 2 && sources.length === 1);
  const server = answers[0]!.socket!;
  await until('it is watched', () => server.timeout === NEVER_MS);
  // As it does when nothing went either way for so long.
  server.emit('timeout');
  assert.equal(server.destroyed, false);
  sources[0]!.push(null);
  await until('the next one is sent', () => answers[1]!.socket !== null);
  assert.equal(server.timeout, 0);
  release.resolve();
  await once(answers[1]!, 'finish');
  socket.write('GET /stream HTTP/1.1\r\nhost: here\r\n\r\n');
  await until('a third is asked for', () => sources.length === 2);
  const sent = once(answers[2]!, 'finish');
  sources[1]!.push(null);
  await sent;
  assert.equal(server.timeout, KEPT_MS, 'the connection is kept for another');
  socket.end();
  const text = `${await buffer(socket)}`;
  assert.equal(text.match(/HTTP\/1\.1 200 OK/g)?.length, 3);
});

test('a proxy that has read ahead of its client is given thirty times as long', async () => {
  await using world = await open(NEVER_MS, ['127.0.0.1']);
  const { port, answers, sources } = world;
  const asked = get(port, '/stream');
  await until('it is asked for', () => sources.length === 1);
  sources[0]!.push(Buffer.alloc(MUCH_BYTES));
  const answer = await asked;
  assert.equal(answers[0]!.socket!.timeout, 30 * NEVER_MS);
  answer.destroy();
});

test('who has taken much of an answer is given time for it, and who has taken little is not', async () => {
  const MIB = 1024 ** 2;
  const MINUTE_MS = 60_000;
  assert.deepEqual(
    [0, 59, 61, 1_000, 1_000_000].map((mib) => timesOf(mib * MIB, MINUTE_MS)),
    [1, 1, 2, 17, 30],
  );
  const takingMs = 20_000;
  await using world = await open(takingMs);
  const { port, answers, sources } = world;
  const asked = get(port, '/stream');
  await until('it is asked for', () => sources.length === 1);
  // Beside what is taken, more than the buffers of two sockets hold.
  for (let mib = 0; mib < 24 + MUCH_BYTES / MIB; mib++) sources[0]!.push(Buffer.alloc(MIB));
  const answer = await asked;
  let taken = 0;
  for await (const chunk of answer.iterator({ destroyOnReturn: false })) {
    taken += (chunk as Buffer).length;
    if (taken >= 24 * MIB) break;
  }
  answer.pause();
  const [sent] = answers as [ServerResponse];
  const { socket } = sent;
  await until('something waits to be taken', () => sent.writableLength > 0);
  // As it does when nothing went either way for so long.
  socket!.emit('timeout');
  assert.deepEqual([sent.destroyed, socket!.timeout], [false, takingMs]);
  for (let times = 1; times < 4 && !sent.destroyed; times++) socket!.emit('timeout');
  assert.ok(sent.destroyed);
  answer.destroy();
});

test('what is asked from within the process, which has no connection, is answered whole', async () => {
  await using opened = await open(1);
  const { statusCode, rawPayload } = await opened.app.inject('/whole');
  assert.deepEqual([statusCode, rawPayload.length], [200, MUCH_BYTES]);
});
