import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { listen } from './listen.ts';
import { createHttpServer } from './server.ts';

const MIB = 1024 * 1024;
/** What the kernel keeps of a connection on this machine, both ends, and what comes between two looks. */
const BESIDE_BYTES = 64 * MIB;

async function open(t: { after(end: () => unknown): void }) {
  const app = await createHttpServer({ log: createLogger('test', 'fatal') });
  t.after(() => app.close());
  app.get('/', async () => ({ is: 'here' }));
  app.post('/', async () => ({ is: 'taken' }));
  const { port, hostname } = new URL(await listen(app, '127.0.0.1', 0));
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  t.after(() => socket.destroy());
  return socket;
}

const REQUESTS = {
  'a GET': 'GET / HTTP/1.1\r\n',
  'what is refused for its type': 'POST / HTTP/1.1\r\nContent-Type: text/x\r\n',
};

for (const [name, head] of Object.entries(REQUESTS))
  test(`of a body without end that nobody wants, as of ${name}, little is read`, async (t) => {
    const socket = await open(t);
    socket.write(`${head}Host: x\r\nContent-Length: 100000000000\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(String(answer), /^HTTP\/1.1 (200|415) /);
    const piece = Buffer.alloc(64 * 1024);
    while (!socket.destroyed && socket.bytesWritten < 4 * BESIDE_BYTES)
      if (!socket.write(piece))
        await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
    assert.ok(socket.bytesWritten < 4 * BESIDE_BYTES, `${socket.bytesWritten} bytes were taken`);
  });

test('a body that nobody wants, and that ends, leaves the connection to the next request', async (t) => {
  const socket = await open(t);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n');
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 200 /);
  socket.write(Buffer.alloc(300_000));
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 200 /);
});
