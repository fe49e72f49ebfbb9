import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { askTrust } from '../trust/ask.ts';

test('a peer whose greeting does not end is not read to the end', async () => {
  let sentBytes = 0;
  const gone = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    const piece = Buffer.alloc(64 * 1024, ' ');
    const send = () => {
      while (!response.destroyed) {
        sentBytes += piece.length;
        if (!response.write(piece)) return;
      }
    };
    response.on('drain', send);
    response.once('close', gone.resolve);
    send();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const told = await askTrust(`http://127.0.0.1:${port}`, 'x', new AbortController().signal);
    await gone.promise;
    assert.equal(told, undefined);
    // What the system's buffers take comes on top.
    assert.ok(sentBytes < 32 * 1024 * 1024, `${sentBytes}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
