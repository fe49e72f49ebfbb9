import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { sha256Hex } from '@skerry/protocol';
import { createGatewaySource } from './gateways.ts';

const SIZE_BYTES = 1024 * 1024;

test('a block that a gateway sends in parts of one byte is left early', async (t) => {
  const block = Buffer.alloc(SIZE_BYTES, 'x');
  const body = Buffer.from(`${'1\r\nx\r\n'.repeat(SIZE_BYTES)}0\r\n\r\n`);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n');
      socket.end(body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const source = createGatewaySource({ urls: () => [url], timeoutMs: 60_000 });
  const before = process.cpuUsage();
  const fetched = source.fetch({ text: 'a-block', digest: sha256Hex(block) } as never, t.signal);
  await assert.rejects(fetched, { code: 'IPFS_UNAVAILABLE' });
  const { user, system } = process.cpuUsage(before);
  t.diagnostic(`${(user + system) / 1_000} ms of CPU`);
  for (const socket of sockets) socket.destroy();
  server.close();
  await once(server, 'close');
});
