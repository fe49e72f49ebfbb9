import assert from 'node:assert/strict';
import { lookup } from 'node:dns';
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { makeCertificate } from '@skerry/kit/testing/certificate';
import { Connections } from './connections.ts';
import { createSender, type Sender } from './send.ts';

const BODY = '{}';
const HEADERS = { 'content-length': String(BODY.length) };
/** For all that answer. */
const PATIENCE_MS = 60_000;
const LOCAL = {
  now: Date.now,
  allowHttp: true,
  allowedAddresses: ['127.0.0.0/8', '::1'],
  timeoutMs: PATIENCE_MS,
};
const WELL = 'HTTP/1.1 204 No Content\r\n\r\n';
const GONE = 'HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n';

/**
 * A sender and what it sends to.
 * @param answer to the first, second... request of the first, second... connection
 * @param early what the first connection is told, of which nothing is read
 */
async function start(answer: (socket: Socket, connection: number, request: number) => void, early?: string) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const connection = sockets.push(socket);
    let got = '';
    let request = 0;
    socket.on('error', () => {});
    if (early !== undefined && connection === 1) {
      socket.write(early);
      return;
    }
    socket.on('data', (bytes) => {
      got += bytes;
      if (!got.endsWith(`\r\n\r\n${BODY}`)) return;
      got = '';
      answer(socket, connection, ++request);
    });
  });
  // All of 127.0.0.0/8 is this machine: many places.
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}/`);
  const sender = createSender(LOCAL);
  return {
    sockets,
    port,
    /** The status, or why there is none. */
    async send(body = BODY) {
      const attempted = await sender.send(url, { 'content-length': String(body.length) }, body);
      return attempted.ok ? attempted.status : (attempted.failure.status ?? attempted.failure.message);
    },
    async [Symbol.asyncDispose]() {
      sender.close();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const CLOSES: Readonly<Record<string, (socket: Socket) => void>> = {
  ends: (socket) => socket.end(),
  closes: (socket) => socket.destroy(),
  resets: (socket) => socket.resetAndDestroy(),
};

for (const [name, close] of Object.entries(CLOSES)) {
  test(`an endpoint that ${name} a kept connection as it is used again gets the delivery once more`, async () => {
    await using one = await start((socket, connection, request) => {
      if (connection === 1 && request === 2) close(socket);
      else socket.write(WELL);
    });
    assert.deepEqual([await one.send(), await one.send(), await one.send()], [204, 204, 204]);
    assert.equal(one.sockets.length, 2);
  });

  test(`an endpoint that ${name} a connection is not asked over a third, nor after it began to answer`, async () => {
    await using stubborn = await start((socket, connection, request) => {
      if (connection === 1 && request === 1) socket.write(WELL);
      else close(socket);
    });
    const failed = 'no connection (ECONNRESET)';
    assert.deepEqual([await stubborn.send(), await stubborn.send()], [204, failed]);
    assert.equal(stubborn.sockets.length, 2);
    assert.equal(await stubborn.send(), failed);
    assert.equal(stubborn.sockets.length, 3);
    await using begun = await start((socket, _, request) => {
      if (request === 1) socket.write(WELL);
      // Some of it is there when the connection ends.
      else socket.write('HTTP/1.1 2', () => socket.end());
    });
    assert.deepEqual([await begun.send(), await begun.send()], [204, failed]);
    assert.equal(begun.sockets.length, 1);
  });
}

test('a connection serves again after an answer whose end is known, and only then', async () => {
  const again = [
    WELL,
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'HTTP/1.0 500 Broken\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n',
    'HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n',
  ];
  const last = [
    'HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n',
    'HTTP/1.0 204 No Content\r\n\r\n',
    'HTTP/1.1 204 No Content\r\nkeep-alive: timeout=1\r\n\r\n',
    // An answer more than was asked for is not taken for the next one.
    `${WELL}${GONE}`,
    'HTTP/1.1 200 OK\r\ncontent-length: 70000\r\n\r\n'.padEnd(70_000),
  ];
  const answers = [...again, ...last, WELL];
  let sent = 0;
  await using one = await start((socket) => void socket.write(answers[sent++]!));
  const statuses = [];
  for (const _ of answers) statuses.push(await one.send());
  assert.deepEqual(statuses, [204, 200, 200, 500, 302, 204, 204, 204, 204, 200, 204]);
  assert.equal(one.sockets.length, 1 + last.length);
});

test('what comes while nothing is asked ends its connection, and is no answer to the next request', async () => {
  await using one = await start((socket) => void socket.write(WELL));
  assert.deepEqual(await Promise.all([one.send(), one.send()]), [204, 204]);
  const [first] = one.sockets;
  first!.write(GONE);
  await once(first!, 'close');
  // The other one waits yet.
  assert.equal(await one.send(), 204);
  assert.equal(one.sockets.length, 2);
});

test('connections that wait are bounded for each place and in all, and have a time', async () => {
  await using one = await start((socket) => void socket.write(WELL));
  const { port } = one;
  const text = `POST / HTTP/1.1\r\nhost: h\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
  const hosts = [1, 2, 3, 4, 5].map((last) => `127.0.0.${last}`);
  const ask = (connections: Connections, host: string) =>
    connections.open({ origin: host, isTls: false, host, port }).ask(text, PATIENCE_MS);
  const bounds = { lookup, idleMs: PATIENCE_MS, idlePerPlace: 2, idleMax: 3 };
  const isKept = (connections: Connections, host: string) => connections.take(host) !== undefined;
  const many = new Connections(bounds);
  for (const host of hosts) await ask(many, host);
  assert.deepEqual(
    hosts.map((host) => isKept(many, host)),
    [false, false, true, true, true],
  );
  const [host] = hosts as [string];
  const same = new Connections(bounds);
  await Promise.all([1, 2, 3].map(() => ask(same, host)));
  assert.deepEqual(
    [1, 2, 3].map(() => isKept(same, host)),
    [true, true, false],
  );
  const brief = new Connections({ ...bounds, idleMs: 0 });
  await ask(brief, host);
  assert.equal(isKept(brief, host), false);
  for (const connections of [many, same, brief]) connections.close();
});

test('an answer without an end is cut off, and its status counts', async () => {
  await using one = await start((socket) => void socket.write('HTTP/1.1 202 Accepted\r\n\r\nhello'));
  assert.equal(await one.send(), 202);
  const [socket] = one.sockets;
  if (!socket!.destroyed) await once(socket!, 'close');
});

test('an answer of 101, or without end before the last, is a failure', async () => {
  const early = 'HTTP/1.1 103 Early Hints\r\n\r\n';
  const answers = [
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    early.repeat(1_000),
  ];
  await using one = await start((socket, connection) => void socket.write(answers[connection - 1]!));
  assert.equal(await one.send(), 'no connection (it was closed)');
  assert.equal(await one.send(), 'no connection (HPE_HEADER_OVERFLOW)');
});

test('a connection that is still being sent a request when its answer is there does not serve again', async () => {
  await using one = await start((socket) => void socket.write(WELL), GONE);
  // More than both sides buffer.
  assert.equal(await one.send('a'.repeat(32 * 1024 * 1024)), 410);
  assert.equal(await one.send(), 204);
  assert.equal(one.sockets.length, 2);
});

test('nothing is sent to who has not proven its name, and the next connection to a host takes up the session of the last', async () => {
  const other = await makeCertificate('DNS:example.org');
  const own = await makeCertificate('DNS:localhost');
  let wasReused: boolean | undefined;
  let requests = 0;
  const server = createTlsServer(other, (_, response) => {
    requests++;
    response.writeHead(204, { connection: 'close' }).end();
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    wasReused = socket.isSessionReused();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(`https://localhost:${(server.address() as AddressInfo).port}/`);
  const send = async (sender: Sender) => {
    const attempted = await sender.send(url, HEADERS, BODY);
    return attempted.ok ? attempted.status : attempted.failure.message;
  };
  const deceived = createSender({ ...LOCAL, ca: other.cert });
  assert.equal(await send(deceived), 'no connection (ERR_TLS_CERT_ALTNAME_INVALID)');
  deceived.close();
  assert.equal(requests, 0);
  server.setSecureContext(own);
  const sender = createSender({ ...LOCAL, ca: own.cert });
  assert.deepEqual([await send(sender), await send(sender)], [204, 204]);
  assert.equal(wasReused, true);
  sender.close();
  server.close();
  await once(server, 'close');
});
