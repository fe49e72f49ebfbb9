import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { shareConnections } from './connections.ts';

test('one client’s connections leave room for others, and all strangers’ for our own', async () => {
  const server = createServer((_request, response) => response.end('here'));
  const ours = { exempt: ['127.0.0.9'], trustedProxies: ['127.0.0.8'] };
  shareConnections(server, ours, { total: 6, reserve: 2, perClient: 2 });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets: Socket[] = [];
  /** Whether it is answered; else it is closed without a word. */
  const isServed = async (address: string) => {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ host: '127.0.0.1', port, localAddress: address });
    sockets.push(socket.on('error', () => {}));
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    return Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
  };
  const served: boolean[] = [];
  const addresses = [2, 2, 2, 3, 3, 4, 9, 8, 9];
  for (const last of addresses) served.push(await isServed(`127.0.0.${last}`));
  assert.deepEqual(served, [true, true, false, true, true, false, true, true, false]);
  sockets[0]!.destroy();
  const [given] = sockets;
  if (!given!.closed) await once(given!, 'close');
  // The server hears of it a moment later.
  while (!(await isServed('127.0.0.2'))) assert.ok(sockets.length < 1_000);
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, 'close');
});
