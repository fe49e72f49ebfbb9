import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { until } from '../../testing/suite/world.ts';
import { overheadOf, readTcpQueues, SocketKeys, shareOf, socketKey } from './queues.ts';

const SENT = Buffer.alloc(10_000);

for (const host of ['127.0.0.1', '::1', '::ffff:127.0.0.1'])
  test(`what waits in the sockets of a connection to ${host} is found by its two ends`, async () => {
    const server = createServer({ pauseOnConnect: true });
    server.listen(0, '::');
    await once(server, 'listening');
    const accepted = once(server, 'connection');
    const client = connect({ host, port: (server.address() as AddressInfo).port });
    const [socket] = (await accepted) as [Socket];
    client.write(SENT);
    await until(async () => {
      const { bySocket, bytes } = await readTcpQueues();
      const found = bySocket.get(socketKey(socket)!);
      return found?.unread === SENT.length && found.unsent === 0 && bytes >= SENT.length;
    });
    client.destroy();
    socket.destroy();
    server.close();
    await once(server, 'close');
    assert.equal(socketKey(client), undefined, 'a connection that is gone has no ends');
  });

test('an IPv6 address is found however it is written, and whatever it ends with', () => {
  const keyOf = (address: string) =>
    socketKey({ localAddress: address, localPort: 443, remoteAddress: address, remotePort: 50_000 });
  for (const [short, long] of [
    ['2001:db8::ab', '2001:db8:0:0:0:0:0:ab'],
    ['2001:db8::', '2001:db8:0:0:0:0:0:0'],
    ['fe80::1f%eth0', 'fe80:0:0:0:0:0:0:1f'],
    ['::ffff:192.0.2.10', '0:0:0:0:0:ffff:c000:20a'],
  ] as const)
    assert.equal(keyOf(short), keyOf(long));
});

test('a connection is spelled once, and not before it has both ends', () => {
  const ends = { localAddress: '192.0.2.1', localPort: 443, remoteAddress: '', remotePort: 50_000 };
  const keys = new SocketKeys();
  assert.equal(keys.of(ends), undefined);
  ends.remoteAddress = '192.0.2.2';
  const key = socketKey(ends);
  assert.equal(keys.of(ends), key);
  ends.remoteAddress = '';
  assert.equal(keys.of(ends), key);
});

test('where the system hides what TCP may have, a small machine has a small limit', () => {
  const gib = 2 ** 30;
  assert.equal(shareOf('287901\t383869\t575802\n', 24 * gib), (287_901 * 4096) / 2);
  // Of 1 GiB the kernel gives TCP 3/64 before it saves.
  const hidden = shareOf('', gib);
  assert.ok(hidden > (0.9 * gib * 3) / 64 / 2 && hidden <= (gib * 3) / 64 / 2);
});

test('memory that came or went while the queues were read makes no byte in them larger', () => {
  assert.equal(overheadOf([1_500, 1_500], 1_000), 1.5);
  assert.equal(overheadOf([4_000, 1_500], 1_000), 1.5);
  assert.equal(overheadOf([1_500, 4_000], 1_000), 1.5);
  assert.equal(overheadOf([undefined, 4_000], 1_000), 1);
  assert.equal(overheadOf([90_000, 90_000], 1_000), 4);
});
