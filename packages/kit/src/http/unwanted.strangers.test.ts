import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol/forms';
import { createLogger } from '../daemon/log.ts';
import { listen } from './listen.ts';
import { createHttpServer } from './server.ts';
import { endsWithAnswer } from './unwanted.ts';

const MIB = 1024 * 1024;
/** What the kernel keeps of a connection on this machine, both ends, and what comes between two looks. */
const BESIDE_BYTES = 64 * MIB;
const MOST_BYTES = BESIDE_BYTES + 16 * MIB;

async function open(t: { after(end: () => unknown): void }) {
  const app = await createHttpServer({ log: createLogger('test', 'fatal') });
  t.after(() => app.close());
  app.get('/', async () => ({ is: 'here' }));
  app.get('/large', async () => 'x'.repeat(2 * BESIDE_BYTES));
  let posted = 0;
  app.post('/', async () => ({ is: 'taken', nth: ++posted }));
  await app.register(async (scope) => {
    scope.addContentTypeParser('application/octet-stream', (_request, body, parsed) => parsed(null, body));
    const config = { watchesItsBody: true };
    scope.post('/refused', { config }, async () => {
      throw new AppError('STORAGE_FULL', 'there is no room');
    });
    scope.post('/refused-late', { config }, async ({ raw: { socket } }) => {
      // As one that waits for a place: what it sends meanwhile stays in the kernel.
      while (socket.bytesRead < 64 * 1024) await new Promise(setImmediate);
      throw new AppError('STORAGE_FULL', 'there is no room');
    });
    // As one that gives its place away: what reads its body hears of it with the end of the connection.
    scope.post('/given-up', { config }, async ({ raw }, reply) => {
      raw.resume();
      await once(raw, 'data');
      endsWithAnswer(reply);
      throw new AppError('OVERLOADED', 'others wait');
    });
    scope.post('/read', { config }, async ({ raw }) => {
      let bytes = 0;
      for await (const chunk of raw) bytes += chunk.length;
      return { bytes };
    });
  });
  const { port, hostname } = new URL(await listen(app, '127.0.0.1', 0));
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  t.after(() => socket.destroy());
  return socket;
}

/** Another connection to where this one was. */
async function connectTo({ port }: { port: number }) {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

const REQUESTS = {
  'a GET': 'GET / HTTP/1.1\r\n',
  'what is refused for its type': 'POST / HTTP/1.1\r\nContent-Type: text/x\r\n',
  'a file that is refused': 'POST /refused HTTP/1.1\r\nContent-Type: application/octet-stream\r\n',
  'a file of a type that is refused': 'POST /refused HTTP/1.1\r\nContent-Type: text/x\r\n',
};

for (const [name, head] of Object.entries(REQUESTS))
  test(`of a body without end that nobody wants, as of ${name}, little is read`, async (t) => {
    const socket = await open(t);
    socket.write(`${head}Host: x\r\nContent-Length: 100000000000\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(String(answer), /^HTTP\/1.1 (200|415|507) /);
    const piece = Buffer.alloc(64 * 1024);
    while (!socket.destroyed && socket.bytesWritten < MOST_BYTES)
      if (!socket.write(piece))
        await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
    assert.ok(socket.bytesWritten < MOST_BYTES, `${socket.bytesWritten} bytes were taken`);
  });

test('a body that nobody wants, and that ends, leaves the connection to the next request', async (t) => {
  const socket = await open(t);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n');
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 200 /);
  socket.write(Buffer.alloc(300_000));
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 200 /);
});

const FILE =
  'Host: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n';

test('who asks before it sends a body is told to when that is read, and never where it is refused', async (t) => {
  const refused = await open(t);
  refused.write(`POST /refused HTTP/1.1\r\n${FILE}`);
  let text = '';
  for await (const chunk of refused) text += chunk;
  assert.match(text, /^HTTP\/1.1 507 /);
  assert.match(text, /\r\nconnection: close\r\n/i);
  const read = await open(t);
  read.write(`POST /read HTTP/1.1\r\n${FILE}`);
  assert.match(String((await once(read, 'data'))[0]), /^HTTP\/1.1 100 Continue\r\n\r\n$/);
  read.write('abc');
  assert.match(String((await once(read, 'data'))[0]), /^HTTP\/1.1 200 .*\{"bytes":3\}$/s);
  // The connection goes on.
  read.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(String((await once(read, 'data'))[0]), /^HTTP\/1.1 200 /);
});

test('a file that is refused, and ends soon, leaves the connection to the next request', async (t) => {
  const socket = await open(t);
  socket.write(
    'POST /refused HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 300000\r\n\r\n',
  );
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 507 /);
  socket.write(Buffer.alloc(300_000));
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 200 /);
});

test('whoever gave up waiting for a 100 meets the answer of a file that is refused, and an end that is none in the middle', async (t) => {
  const socket = await open(t);
  const errors: Error[] = [];
  socket.on('error', (error) => errors.push(error));
  socket.write(`POST /refused-late HTTP/1.1\r\n${FILE.replace('Length: 3', 'Length: 100000000')}`);
  const piece = Buffer.alloc(64 * 1024);
  for (let sent = 0; sent < 64; sent++) socket.write(piece);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  await once(socket, 'end');
  assert.match(text, /^HTTP\/1.1 507 /);
  assert.deepEqual(errors, []);
});

test('what comes behind a refused body is not done where the connection was said to end', async (t) => {
  const socket = await open(t);
  await once(socket, 'connect');
  const port = socket.remotePort!;
  const type = 'Content-Type: application/octet-stream';
  socket.write(`POST /refused HTTP/1.1\r\nHost: x\r\n${type}\r\nTransfer-Encoding: chunked\r\n\r\n`);
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1.1 507 .*\r\nconnection: close\r\n/is);
  socket.write('3\r\nabc\r\n0\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  socket.end();
  await once(socket, 'close');
  const another = await connectTo({ port });
  another.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  assert.match(String((await once(another, 'data'))[0]), /"nth":1/);
  another.destroy();
});

test('a file that gives its place away behind an answer that its sender leaves unread ends soon: it was read on without an end', async (t) => {
  const socket = await open(t);
  socket.pause();
  const head = 'POST /given-up HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n';
  socket.write(`GET /large HTTP/1.1\r\nHost: x\r\n\r\n${head}Content-Length: ${1024 * MIB}\r\n\r\n`);
  const piece = Buffer.alloc(MIB);
  let sent = 0;
  const closed = once(socket, 'close').then(() => 'closed');
  while (!socket.destroyed && sent < 2 * MOST_BYTES) {
    sent += piece.length;
    const hasGone = new Promise((resolve) => socket.write(piece, resolve));
    await Promise.race([hasGone, closed]);
  }
  assert.ok(socket.destroyed, `${sent / MIB} MiB were taken`);
});
