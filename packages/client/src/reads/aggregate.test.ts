import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { readAggregate } from './aggregate.ts';

const OWNER = '0x0000000000000000000000000000000000000001';

test('an aggregate is read within the limit of who asks, and refused beyond it', async () => {
  const answer = JSON.stringify({ address: OWNER, data: { key: { text: 'x'.repeat(1_000) } }, info: {} });
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(answer);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const read = (bytesMax: number) => readAggregate(url, OWNER, 'key', { bytesMax });
    assert.deepEqual(await read(answer.length), { text: 'x'.repeat(1_000) });
    await assert.rejects(read(answer.length - 1), { code: 'UNEXPECTED_ANSWER' });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
