import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { END, START } from '@skerry/protocol';
import { FRAMES_BODY_BYTES } from './frames.ts';
import { createHttpLink, type PeerLink } from './link.ts';

const { signal } = new AbortController();

/** A peer that says what it likes after each request, byte for byte. */
async function say(answer: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  let requests = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', () => {
      requests++;
      answer(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    link: createHttpLink(url, { timeoutMs: 20_000 }),
    requests: () => requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const ASKED: Readonly<Record<string, (link: PeerLink) => Promise<unknown>>> = {
  greet: (link) => link.greet(signal),
  askRanges: (link) => link.askRanges([{ kind: 'list', lower: START, upper: END }], signal),
  fetchMessages: (link) => link.fetchMessages([{ time: 1, id: 'ab'.repeat(20) }], signal),
  fetchPage: (link) => link.fetchPage('', signal),
};

const head = (status: number, ...lines: string[]) => `HTTP/1.1 ${status} x\r\n${lines.join('\r\n')}\r\n\r\n`;
const memory = () => process.memoryUsage().rss;

for (const [name, ask] of Object.entries(ASKED)) {
  test(`${name}: of an answer that grows a thousandfold no more is read than any answer has`, async () => {
    const once = gzipSync(Buffer.alloc(256 * 1024 * 1024));
    for (const [encoding, body] of [
      ['gzip', once],
      ['gzip, gzip', gzipSync(once)],
    ] as const) {
      const lines = [`content-encoding: ${encoding}`, `content-length: ${body.length}`];
      await using bomb = await say((socket) => {
        socket.write(head(200, ...lines));
        socket.write(body);
      });
      const before = memory();
      await assert.rejects(ask(bomb.link), { code: 'PEER_MISBEHAVED' });
      const grown = memory() - before;
      assert.ok(grown < 12 * FRAMES_BODY_BYTES, `${grown} bytes more`);
    }
  });

  test(`${name}: an answer in parts of one byte is left early, and held against the peer`, async () => {
    const parts = Buffer.from('1\r\nx\r\n'.repeat(64 * 1024));
    let sent = 0;
    await using peer = await say((socket) => {
      socket.write(head(200, 'transfer-encoding: chunked'));
      const more = () => {
        while (!socket.destroyed && socket.write(parts)) sent += parts.length;
      };
      socket.on('drain', more);
      more();
    });
    await assert.rejects(ask(peer.link), { code: 'PEER_MISBEHAVED', message: /answer comes in parts/ });
    assert.ok(sent < 2 * FRAMES_BODY_BYTES, `${sent} bytes`);
  });

  test(`${name}: a length that is not so is nobody's message`, async () => {
    await using longer = await say((socket) => {
      socket.end(`${head(200, 'content-length: 1000000')}{"node_id":`);
    });
    await assert.rejects(ask(longer.link), { code: 'UPSTREAM_UNAVAILABLE' });
    for (const length of ['-1', '1e3', '99999999999999999999', '5, 6', 'x']) {
      await using odd = await say((socket) => socket.end(`${head(200, `content-length: ${length}`)}garbage`));
      await assert.rejects(ask(odd.link), (error: { code: string }) =>
        ['UPSTREAM_UNAVAILABLE', 'PEER_MISBEHAVED'].includes(error.code),
      );
    }
  });

  test(`${name}: nobody is led elsewhere, nor made to ask for ever`, async () => {
    await using target = await say((socket) => socket.end(head(200, 'content-length: 0')));
    for (const status of [301, 303, 307]) {
      await using peer = await say((socket) =>
        socket.end(head(status, `location: ${target.url}`, 'content-length: 0')),
      );
      await assert.rejects(ask(peer.link), { code: 'UPSTREAM_UNAVAILABLE' });
      assert.equal(peer.requests(), 1);
    }
    assert.equal(target.requests(), 0);
    await using busy = await say((socket) =>
      socket.write(`${head(503, 'retry-after: 0.001', 'content-length: 2')}{}`),
    );
    await assert.rejects(ask(busy.link), { code: 'UPSTREAM_UNAVAILABLE' });
    assert.equal(busy.requests(), 4);
  });
}
