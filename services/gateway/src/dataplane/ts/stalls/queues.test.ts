import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { until } from '../../testing/suite/world.ts';
import { readTcpQueues, socketKey } from './queues.ts';

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
