import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { RpcFailure } from './failures.ts';
import { sendCalls } from './transport.ts';

const CALLS = [{ method: 'eth_chainId', params: [] }];
const ANSWER = JSON.stringify({ jsonrpc: '2.0', id: 0, result: '0x1' });

/** What one request to a server that does this comes to. */
async function ask(answer: RequestListener, timeoutMs = 60_000): Promise<Uint8Array> {
  const server = createServer(answer);
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', () => listening.resolve());
  await listening.promise;
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/KEY`;
    return await sendCalls(url, CALLS, { timeoutMs, signal: new AbortController().signal });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const failsAs = (kind: RpcFailure['kind']) => (error: Error) => {
  assert.equal((error as Error & { failure: RpcFailure }).failure.kind, kind);
  assert.ok(!error.message.includes('KEY'), error.message);
  return true;
};

describe('one request to an endpoint', () => {
  test('bodies come as they are: of a told length, in pieces, packed', async () => {
    const long = `"${'x'.repeat(300_000)}"`;
    for (const text of [ANSWER, long]) {
      const told = await ask((_request, response) => void response.end(text));
      const inPieces = await ask((_request, response) => {
        response.write(text.slice(0, 10));
        response.end(text.slice(10));
      });
      const packed = await ask((_request, response) => {
        response.setHeader('content-encoding', 'gzip');
        response.end(gzipSync(text));
      });
      for (const body of [told, inPieces, packed]) assert.equal(Buffer.from(body).toString(), text);
    }
  });

  test('what is cut off, packed wrongly, sent elsewhere or another protocol did not get through', async () => {
    const cut: RequestListener = (_request, response) => {
      response.setHeader('content-length', '1000');
      response.write(ANSWER, () => response.destroy());
    };
    const cutPacked: RequestListener = (_request, response) => {
      response.setHeader('content-encoding', 'gzip');
      response.end(gzipSync(ANSWER).subarray(0, 20));
    };
    const unpacked: RequestListener = (_request, response) => {
      response.setHeader('content-encoding', 'gzip');
      response.end(ANSWER);
    };
    const elsewhere: RequestListener = (_request, response) =>
      void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end();
    const changed: RequestListener = ({ socket }) =>
      void socket.end('HTTP/1.1 101 Other\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n');
    for (const answer of [cut, cutPacked, unpacked, elsewhere, changed])
      await assert.rejects(ask(answer), failsAs('unreachable'));
  });

  test('a body that never ends is too large, also one that is small until it is unpacked', async () => {
    const megabyte = Buffer.alloc(1 << 20);
    const endless: RequestListener = (_request, response) => {
      const write = () => {
        while (!response.destroyed && response.write(megabyte));
      };
      response.on('drain', write);
      write();
    };
    const bomb: RequestListener = (_request, response) => {
      response.setHeader('content-encoding', 'gzip');
      response.end(gzipSync(Buffer.alloc(130 << 20), { level: 1 }));
    };
    for (const answer of [endless, bomb]) await assert.rejects(ask(answer), failsAs('range_too_large'));
  });

  test('who does not answer in time is a timeout', async () => {
    await assert.rejects(
      ask(() => {}, 50),
      failsAs('timeout'),
    );
    await assert.rejects(
      ask((_request, response) => void response.write('{'), 50),
      failsAs('timeout'),
    );
  });
});
