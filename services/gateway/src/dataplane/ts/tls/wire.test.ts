import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { Wire } from './wire.ts';

test('a connection whose both directions have ended is over, and not broken', async () => {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const peer = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  const [socket] = (await accepted) as [Socket];
  const told: string[] = [];
  const wire = new Wire(socket, {
    onOpen: () => told.push('open'),
    onBytes: () => told.push('bytes'),
    onEnd: () => {
      told.push('end');
      wire.end();
    },
    onDrained: () => told.push('drained'),
    onEnded: () => told.push('ended'),
    onBroken: () => told.push('broken'),
  });
  const closed = once(socket, 'close');
  wire.read();
  peer.end();
  await closed;
  assert.deepEqual(told, ['end', 'ended']);
  server.close();
  await once(server, 'close');
});
