import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { readReusing } from './reusing-reader.ts';

/** More than sockets and buffers hold, and no whole number of chunks. */
const bytes = randomBytes(6 * 1024 * 1024 + 12_345);
const hashOf = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');

describe('reading a file with buffers that are used again', () => {
  let directory: string;
  let path: string;
  const range = { first: 0, last: bytes.length - 1 };
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'skerry-reuse-'));
    path = join(directory, 'file');
    await writeFile(path, bytes);
  });
  after(() => rm(directory, { recursive: true, force: true }));

  test('clients that read slowly, and that ask again before they are answered, get every byte', async () => {
    const server = createServer(async (_, response) => {
      response.setHeader('content-length', bytes.length);
      readReusing(await open(path), range).pipe(response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      await Promise.all(
        Array.from({ length: 3 }, async () => {
          const socket = connect({ port, host: '127.0.0.1' });
          const request = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
          socket.write(`${request}${request.replace('host: a', 'host: a\r\nconnection: close')}`);
          const received: Buffer[] = [];
          for await (const chunk of socket) received.push(chunk as Buffer);
          const all = Buffer.concat(received);
          for (let at = 0, turn = 0; turn < 2; turn++) {
            const start = all.indexOf('\r\n\r\n', at) + 4;
            at = start + bytes.length;
            assert.equal(hashOf(all.subarray(start, at)), hashOf(bytes), `answer ${turn}`);
          }
        }),
      );
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test('a range, one byte, and a file that has become shorter', async () => {
    for (const [first, last] of [
      [5, 700_000],
      [bytes.length - 1, bytes.length - 1],
      [0, 0],
    ] as const)
      assert.deepEqual(
        // No more chunks than buffers: none of them is overwritten.
        await buffer(readReusing(await open(path), { first, last })),
        bytes.subarray(first, last + 1),
      );
    const short = join(directory, 'short');
    await writeFile(short, bytes);
    await truncate(short, 1000);
    await assert.rejects(buffer(readReusing(await open(short), range)), /shorter/);
  });

  test('whoever goes away leaves no open file', async () => {
    const handle = await open(path);
    const stream = readReusing(handle, range);
    stream.read(0);
    stream.destroy();
    await once(stream, 'close');
    assert.equal(handle.fd, -1);
  });
});
