import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { END, START } from '@skerry/protocol';
import { FRAMES_BODY_BYTES } from './frames.ts';
import { createHttpLink, type PeerLink } from './link.ts';

const { signal } = new AbortController();
const CHUNK = Buffer.alloc(256 * 1024, 'x');
/** What a socket and its buffers may take beyond what is read. */
const SLACK_BYTES = 32 * 1024 * 1024;

/** A server that answers every request in one way. */
async function serve(answer: (response: ServerResponse) => void, options?: { timeoutMs: number }) {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    link: createHttpLink(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, options),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const QUESTIONS: Readonly<Record<string, (link: PeerLink) => Promise<unknown>>> = {
  greet: (link) => link.greet(signal),
  askRanges: (link) => link.askRanges([{ kind: 'list', lower: START, upper: END }], signal),
  fetchMessages: (link) => link.fetchMessages([{ time: 1, id: 'ab'.repeat(20) }], signal),
  fetchPage: (link) => link.fetchPage('', signal),
  offer: (link) => link.offer([], signal),
};

describe('a peer over HTTP', () => {
  test('one that is no core node is told to be named by its root', async () => {
    await using other = await serve((response) => {
      response.statusCode = 404;
      response.end('{"code":"ROUTE_NOT_FOUND"}');
    });
    await assert.rejects(other.link.greet(signal), {
      code: 'ROUTE_NOT_FOUND',
      message: `${other.link.name} is no core node (the peer returned 404); name its root URL`,
    });
  });

  test('a refusal that breaks off, and a wish to wait beyond the end of the request, are the failures of the peer', async () => {
    await using broken = await serve((response) => {
      response.writeHead(503, { 'content-length': 100 });
      response.write('{', () => response.socket?.destroy());
    });
    await assert.rejects(broken.link.greet(signal), { code: 'UPSTREAM_UNAVAILABLE' });
    await using busy = await serve(
      (response) => response.writeHead(503, { 'retry-after': '30' }).end('{"code":"OVERLOADED"}'),
      { timeoutMs: 500 },
    );
    await assert.rejects(busy.link.greet(signal), { code: 'UPSTREAM_UNAVAILABLE' });
    const leaving = new AbortController();
    const greeting = busy.link.greet(leaving.signal);
    leaving.abort(new Error('the node ends'));
    await assert.rejects(greeting, /the node ends/);
  });

  test('why a peer does not answer is told in the words that clients have, and the text of an abort is not', async () => {
    const said = (link: PeerLink) =>
      link.greet(signal).then(
        () => assert.fail('it does not answer'),
        ({ message, cause }: Error) => [message.replace(link.name, 'URL'), (cause as Error)?.message],
      );
    await using silent = await serve(() => {}, { timeoutMs: 50 });
    const late = ['the peer URL does not answer (no answer within 50 ms)', undefined];
    assert.deepEqual(await said(silent.link), late);
    await using unending = await serve((response) => void response.write('x'), { timeoutMs: 50 });
    assert.deepEqual(await said(unending.link), late);
    const [gone] = await said(createHttpLink('http://127.0.0.1:9'));
    assert.match(gone!, /^the peer URL does not answer \(.+\)$/);
  });

  test('a node that ends as the answer has come does not wait for what the peer wishes', async (t) => {
    await using busy = await serve((response) =>
      response.writeHead(503, { 'retry-after': '0.001' }).end('{"code":"OVERLOADED"}'),
    );
    const leaving = new AbortController();
    const real = globalThis.fetch;
    const late = async (...asked: Parameters<typeof fetch>) => {
      const response = await real(...asked);
      const { status, headers } = response;
      const text = await response.text();
      leaving.abort(new Error('the node ends'));
      return new Response(text, { status, headers });
    };
    t.mock.method(globalThis, 'fetch', late);
    await assert.rejects(busy.link.greet(leaving.signal), /the node ends/);
  });

  for (const [name, ask] of Object.entries(QUESTIONS)) {
    test(`${name}: an answer without an end is left, and held against the peer`, async () => {
      let sent = 0;
      await using peer = await serve((response) => {
        const more = () => {
          while (!response.destroyed && response.write(CHUNK)) sent += CHUNK.length;
        };
        response.on('drain', more);
        more();
      });
      await assert.rejects(ask(peer.link), { code: 'PEER_MISBEHAVED' });
      assert.ok(sent <= FRAMES_BODY_BYTES + SLACK_BYTES, `${sent} bytes`);
    });

    test(`${name}: an answer that comes byte by byte is given up once the request has had its time`, async () => {
      const trickle = (response: ServerResponse) => {
        // Fewer parts than are too many.
        if (!response.destroyed) response.write('x', () => setTimeout(trickle, 1, response));
      };
      await using slow = await serve(trickle, { timeoutMs: 200 });
      await assert.rejects(ask(slow.link), { code: 'UPSTREAM_UNAVAILABLE' });
    });

    test(`${name}: garbage is no answer; a connection that breaks is nobody's fault`, async () => {
      await using garbage = await serve((response) => response.end('<html>garbage</html>'));
      await assert.rejects(ask(garbage.link), { code: 'PEER_MISBEHAVED' });
      await using broken = await serve((response) => response.socket?.destroy());
      await assert.rejects(ask(broken.link), { code: 'UPSTREAM_UNAVAILABLE' });
    });
  }
});
