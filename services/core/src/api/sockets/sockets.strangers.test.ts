import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { buildNetworkMessage } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { isErrorCode } from '@skerry/protocol';
import { MESSAGE_FILTERS, namesIn } from '@skerry/protocol/api/core/common/filters';
import fc from 'fast-check';
import { BACKLOG_BYTES, SLOW, YIELDED } from '../../notify/sockets/connection.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { TestSocket } from '../../testing/sockets.ts';
import { limitsExcept } from '../../testing/strangers.ts';

const OWN = '127.0.0.9';
/** What the kernel keeps of a connection on this machine, both ends, and one piece. */
const BESIDE_BYTES = 24 * 1024 * 1024;
const LONG = 'x'.repeat(190_000);

async function send(core: TestCore, n: number, text: string): Promise<string> {
  const { body, itemHash } = buildNetworkMessage(
    { type: 'POST', channel: 'sockets', content: { type: 'note', content: { n, text } } },
    signers.alice,
  );
  assert.equal((await core.post('/messages', body)).status, 200);
  return itemHash;
}

const countOpen = async (core: TestCore) =>
  Number(/^skerry_sockets_open\{kind="messages"\} (\d+)$/m.exec(await core.rooms.metrics.text())![1]);

describe('WebSockets of strangers', () => {
  test('one client has its share, all strangers have theirs, and own services always find a place', async () => {
    await using core = await createTestCore({
      settings: {
        ...{ maxSockets: 8, socketReserve: 3, socketsPerClient: 2 },
        limits: limitsExcept(OWN),
      },
    });
    const url = await core.listen();
    const open = (localAddress: string, path = 'messages') =>
      TestSocket.tryOpen(`${url}/api/ws0/${path}`, { localAddress });
    const held: unknown[] = [await open('127.0.0.2'), await open('127.0.0.2', 'status')];
    const refused = await open('127.0.0.2');
    assert.ok(!(refused instanceof TestSocket));
    assert.deepEqual([refused.status, refused.body.code], [429, 'RATE_LIMITED']);
    assert.equal(refused.headers['retry-after'], '10');
    for (const address of ['127.0.0.3', '127.0.0.4', '127.0.0.5']) held.push(await open(address));
    held.push(await open('127.0.0.6'));
    assert.deepEqual(await (held[0] as TestSocket).closed, { code: 1013, reason: YIELDED });
    const late = await open('127.0.0.7');
    assert.ok(
      !(late instanceof TestSocket) && late.status === 503,
      'each has one, and the rest is kept for own services',
    );
    assert.match(await core.rooms.metrics.text(), /^skerry_sockets_let_go_total\{kind="messages"\} 1$/m);
    for (let n = 0; n < 3; n++) held.push(await open(OWN));
    const sockets = held.map((one) => {
      assert.ok(one instanceof TestSocket);
      return one;
    });
    sockets[1]!.close();
    await until('a place for the client that let one go', async () => {
      const again = await open('127.0.0.2');
      if (again instanceof TestSocket) sockets.push(again);
      return again instanceof TestSocket;
    });
    for (const one of sockets) one.close();
  });

  test('a reader that does not read is let go and told why; what waits for it is bounded, and others read on', async () => {
    await using core = await createTestCore();
    const url = `${await core.listen()}/api/ws0/messages?history=0`;
    const slow = await TestSocket.open(url);
    const quick = await TestSocket.open(url);
    let slowBytes = 0;
    slow.client.on('message', (data: Buffer) => {
      slowBytes += data.length;
    });
    slow.client.pause();
    const isLetGo = async () =>
      /^skerry_sockets_let_go_total\{kind="messages"\} 1$/m.test(await core.rooms.metrics.text());
    const sent: string[] = [];
    while (!(await isLetGo())) {
      assert.ok(sent.length < 500, 'it is let go some time');
      for (let n = 0; n < 5; n++) sent.push(await send(core, sent.length, LONG));
    }
    slow.client.resume();
    assert.deepEqual(await slow.closed, { code: 1013, reason: SLOW });
    assert.deepEqual(slow.hashes, sent.slice(0, slow.hashes.length), 'what came before is whole');
    assert.ok(slowBytes < BACKLOG_BYTES + BESIDE_BYTES, `${slowBytes} bytes waited for it`);
    const last = await send(core, -1, 'last');
    await quick.until((frames) => frames.at(-1)?.item_hash === last);
    assert.deepEqual(quick.hashes, [...sent, last]);
    await until(
      'one open WebSocket',
      () => countOpen(core),
      (open) => open === 1,
    );
    quick.close();
  });

  test('who talks is sent away, and so is who sends more than a short frame', async () => {
    await using core = await createTestCore();
    const url = `${await core.listen()}/api/ws0/messages`;
    for (const say of ['ping', 'pong'] as const) {
      const talking = await TestSocket.open(url);
      for (let n = 0; n < 200; n++) talking.client[say]();
      assert.equal((await talking.closed).code, 1008, say);
    }
    const long = await TestSocket.open(url);
    long.client.send('x'.repeat(5_000));
    assert.equal((await long.closed).code, 1009);
    const polite = await TestSocket.open(url);
    polite.client.send('{}');
    polite.client.ping();
    await once(polite.client, 'pong');
    polite.close();
    await until(
      'no open WebSocket',
      () => countOpen(core),
      (open) => open === 0,
    );
  });

  test('of a frame that is too long, and of parts of frames without end, little is read', async () => {
    await using core = await createTestCore();
    const { port, hostname } = new URL(await core.listen());
    /** What a client can send until it is cut off. */
    const pour = async (begin: Buffer, piece: Buffer) => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.write(
        'GET /api/ws0/messages HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
          'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      );
      await once(socket, 'data');
      socket.write(begin);
      while (!socket.destroyed && socket.bytesWritten < 4 * BESIDE_BYTES)
        if (!socket.write(piece))
          await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
      socket.destroy();
      return socket.bytesWritten;
    };
    const gigabyte = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0]);
    const part = Buffer.from([0x00, 0x80, 0, 0, 0, 0]);
    const parts = Buffer.concat(Array.from({ length: 10_000 }, () => part));
    const first = Buffer.from([0x02, 0x80, 0, 0, 0, 0]);
    for (const sent of [await pour(gigabyte, Buffer.alloc(64 * 1024)), await pour(first, parts)])
      assert.ok(sent < BESIDE_BYTES, `${sent} bytes were taken`);
    await until(
      'no open WebSocket',
      () => countOpen(core),
      (open) => open === 0,
    );
  });

  test('handshakes that are none, and clients that leave in the middle of one, hold nothing', async () => {
    await using core = await createTestCore();
    const { port, hostname } = new URL(await core.listen());
    const knock = async (head: string, isImpatient = false) => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.write(`GET /api/ws0/messages HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n${head}\r\n\r\n`);
      if (isImpatient) return socket.destroySoon();
      const [data] = (await once(socket, 'data')) as [Buffer];
      socket.destroy();
      return String(data).split('\r\n', 1)[0];
    };
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
    assert.match((await knock('Upgrade: websocket'))!, / 422 /);
    assert.match((await knock(`Upgrade: websocket\r\n${key}`))!, / 422 /);
    assert.match((await knock(`Upgrade: websocket\r\n${key}\r\nSec-WebSocket-Version: 7`))!, / 422 /);
    assert.match((await knock('Upgrade: h2c'))!, / 426 /);
    assert.match((await knock(`Upgrade: websocket\r\n${key}\r\nSec-WebSocket-Version: 13`))!, / 101 /);
    for (let n = 0; n < 20; n++)
      await knock(`Upgrade: websocket\r\n${key}\r\nSec-WebSocket-Version: 13`, true);
    await until(
      'no open WebSocket',
      () => countOpen(core),
      (open) => open === 0,
    );
  });

  test('any query is followed or refused with a code, and nothing stays of it', async () => {
    await using core = await createTestCore();
    const url = `${await core.listen()}/api/ws0/messages`;
    const names = Object.values(MESSAGE_FILTERS).flatMap((one) => [...namesIn(one, '/messages.json')]);
    const value = fc.oneof(
      fc.constantFrom(
        '',
        '0',
        '1',
        '-1',
        '1e309',
        'NaN',
        'POST',
        ',',
        'a,b',
        '%00',
        '%',
        '%zz',
        '[]',
        signers.alice.address,
      ),
      fc.string({ maxLength: 40 }).map(encodeURIComponent),
      fc.nat().map(String),
    );
    const parameter = fc.tuple(
      fc.oneof(
        { weight: 5, arbitrary: fc.constantFrom(...names, 'history', 'excludeContent') },
        { weight: 1, arbitrary: fc.string({ maxLength: 8 }).map(encodeURIComponent) },
      ),
      value,
    );
    const counts = { followed: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(parameter, { maxLength: 4 }), async (parameters) => {
        const query = parameters.map(([name, text]) => `${name}=${text}`).join('&');
        const opened = await TestSocket.tryOpen(`${url}?${query}`);
        if (opened instanceof TestSocket) {
          counts.followed++;
          opened.close();
          return;
        }
        counts.refused++;
        assert.ok(opened.status >= 400 && opened.status < 500, `${query}: ${JSON.stringify(opened.body)}`);
        assert.ok(isErrorCode(opened.body.code), query);
      }),
      { numRuns: 300, examples: [[[['history', '1e309']]]] },
    );
    assert.ok(counts.followed > 20 && counts.refused > 20, JSON.stringify(counts));
    await until(
      'no open WebSocket',
      () => countOpen(core),
      (open) => open === 0,
    );
    const whole = await TestSocket.open(`${url}?history=0`);
    const hash = await send(core, 1, 'after all that');
    await whole.until(({ length }) => length === 1);
    assert.deepEqual(whole.hashes, [hash]);
    whole.close();
  });
});
