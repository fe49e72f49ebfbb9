import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createLogger, listen } from '@skerry/kit';
import { HELD_FILES_BODY_BYTES, sha256Hex } from '@skerry/protocol';
import { FileFetcher } from '../../store/files/fetcher.ts';
import { createTestCore, signers } from '../../testing/core.ts';
import { createPeerFileSource } from './file-source.ts';

const { alice, bob } = signers;
const log = createLogger('test', 'silent');
const { signal } = new AbortController();
const names = Array.from({ length: 9 }, (_, n) => sha256Hex(`file ${n}`));
const store = (hash: string) => ({ type: 'STORE', content: { item_type: 'storage', item_hash: hash } });

/** A peer that answers every request in one way. */
async function serve(answer: (response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let misbehaved = 0;
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    source: createPeerFileSource(url, () => misbehaved++),
    misbehaved: () => misbehaved,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('a peer is not blamed for the file of a STORE message by whose hash somebody names one', async () => {
  await using holder = await createTestCore();
  await using core = await createTestCore();
  const { files } = holder.rooms;
  const blob = await files.receive(Readable.from([Buffer.from('a file')]));
  await files.storeUnpinned(blob, 'text/plain');
  const { body } = await holder.send(alice, store(sha256Hex('a file')));
  await core.send(bob, store(body.item_hash));
  let blamed = 0;
  const source = createPeerFileSource(await listen(holder.api, '127.0.0.1', 0), () => blamed++);
  const fetcher = new FileFetcher({ ...core.rooms, sources: [source], log });
  await fetcher.look(signal);
  await fetcher.idle();
  assert.equal(blamed, 0);
  // It gives the file of that message, and says which one it is.
  assert.equal((await holder.get(`/storage/${body.item_hash}`)).status, 200);
});

test('a core node says which of many files it has', async () => {
  await using holder = await createTestCore();
  const { files } = holder.rooms;
  const held = [2, 8];
  for (const n of held)
    await files.storeUnpinned(await files.receive(Readable.from([Buffer.from(`file ${n}`)])), 'text/plain');
  const source = createPeerFileSource(await listen(holder.api, '127.0.0.1', 0));
  assert.deepEqual(await source.findHeld!(names, signal), { held: held.map((n) => names[n]) });
});

test('a file that comes byte by byte is left early, and held against the peer; one that stands still ends once nobody wants it', async () => {
  await using core = await createTestCore();
  const SIZE_BYTES = 256 * 1024;
  const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  // A server of HTTP would join what it writes at once.
  await using trickling = await serve(
    ({ socket }) => void socket!.write(`${head}${'1\r\nx\r\n'.repeat(SIZE_BYTES)}0\r\n\r\n`),
  );
  const open = async ({ source }: typeof trickling) => {
    const opened = await source.open(names[0]!, signal);
    assert.ok(opened && 'stream' in opened);
    return opened.stream;
  };
  await assert.rejects(core.rooms.files.receive(await open(trickling), SIZE_BYTES), {
    code: 'PEER_MISBEHAVED',
  });
  assert.equal(trickling.misbehaved(), 1);

  const ended = Promise.withResolvers<void>();
  await using still = await serve((response) => {
    response.on('close', ended.resolve);
    response.write('x');
  });
  (await open(still)).destroy();
  await ended.promise;
  assert.equal(still.misbehaved(), 0);
});

test('what is no answer about many files is held against the peer; that it does not know the question, or is busy, is not', async () => {
  const long = Buffer.alloc(HELD_FILES_BODY_BYTES + 1, 1);
  for (const bytes of [Buffer.alloc(0), Buffer.of(1, 0), Buffer.of(2, 0, 0), Buffer.of(1, 0, 1), long]) {
    await using liar = await serve((response) => response.end(bytes));
    await assert.rejects(liar.source.findHeld!(names, signal), { code: 'PEER_MISBEHAVED' });
    assert.equal(liar.misbehaved(), 1);
  }
  const refusals = [
    [404, {}, 3_600_000],
    [500, {}, 60_000],
    [429, { 'retry-after': '7' }, 7_000],
  ] as const;
  for (const [status, headers, restMs] of refusals) {
    await using peer = await serve((response) => response.writeHead(status, headers).end('{}'));
    assert.deepEqual(await peer.source.findHeld!(names, signal), { restMs });
    assert.equal(peer.misbehaved(), 0);
  }
});
