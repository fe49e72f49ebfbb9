import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { shareConnections } from './connections.ts';

test('one client’s connections leave room for others, and all strangers’ for our own', async () => {
  const server = createServer((_request, response) => response.end('here'));
  const ours = { exempt: ['127.0.0.9'], trustedProxies: ['127.0.0.8'] };
  let letGo = 0;
  const limits = { total: 6, reserve: 2, perClient: 2 };
  shareConnections(server, ours, { limits, onLetGo: () => letGo++ });
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
  /** One after another, by the last number of its address. */
  const serve = async (...addresses: number[]) => {
    const served: boolean[] = [];
    for (const last of addresses) served.push(await isServed(`127.0.0.${last}`));
    return served;
  };
  const closed = async (socket: Socket) => socket.closed || once(socket, 'close');
  assert.deepEqual(await serve(2, 2, 2), [true, true, false], 'it has its share');
  assert.deepEqual(await serve(3, 3), [true, true]);
  assert.deepEqual(await serve(4, 5), [true, true], 'who has none takes one of who has several');
  const [first, second, , third, fourth] = sockets;
  await Promise.all([closed(first!), closed(third!)]);
  assert.deepEqual([second!.closed, fourth!.closed], [false, false], 'the oldest goes');
  assert.deepEqual(await serve(6), [false], 'each has one');
  assert.equal(letGo, 4);
  assert.deepEqual(await serve(9, 8, 9), [true, true, false]);
  second!.destroy();
  await closed(second!);
  // The server hears of it a moment later.
  while (!(await isServed('127.0.0.2'))) assert.ok(sockets.length < 1_000);
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, 'close');
});
