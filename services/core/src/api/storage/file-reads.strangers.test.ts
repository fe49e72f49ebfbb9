import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import type { FastifyReply } from 'fastify';
import { FileReads } from './file-reads.ts';

const PER_CLIENT = 8;
const STRANGERS = 224;
const MINUTE_MS = 60_000;
/** More than buffers take in a first minute. */
const MUCH_BYTES = 32 * 1024 * 1024;

/** More than the buffers of two sockets hold. */
const endless = () =>
  Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(64 * 1024);
    })(),
  );
/** As of a store that is slow. */
const silent = () => new Readable({ read() {} });

const log = { debug() {} };
const clientOf = (asked: { readonly headers: IncomingMessage['headers'] }) => {
  const key = String(asked.headers['x-client']);
  return { key, isExempt: key === 'own' };
};

/** A server of far files; `/silent` comes slowly. */
async function open() {
  const reads = new FileReads(clientOf as never);
  const sockets = new Map<string, Socket>();
  const sources: Readable[] = [];
  const server = createServer(async (asked, raw) => {
    const reply = { raw, log, request: { raw: asked, headers: asked.headers } };
    using place = await reads.take(reply as unknown as FastifyReply);
    raw.flushHeaders();
    const bytes = asked.url === '/silent' ? silent() : endless();
    sources.push(bytes);
    place.keepFor(bytes).pipe(raw);
    sockets.set(String(asked.headers['x-reader']), raw.socket!);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const waits = (reader: string) => sockets.get(reader)!.writableLength > 0;
  return {
    /** Of those who ask by these names. */
    sockets,
    async ask(client: string, reader: string, path = '/'): Promise<IncomingMessage> {
      const headers = { 'x-client': client, 'x-reader': reader };
      const asked = request({ port, path, headers, agent: false })
        .on('error', () => {})
        .end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      return answer.on('error', () => {});
    },
    /** Has the buffers of each fill up. */
    full: (...readers: string[]) => until('something waits to be taken', () => readers.every(waits)),
    /** Takes more than so many bytes, and then nothing more. */
    async read(answer: IncomingMessage, reader: string, bytes: number): Promise<void> {
      const socket = sockets.get(reader)!;
      const before = socket.bytesWritten;
      answer.resume();
      await until('it takes some', () => socket.bytesWritten > before + bytes);
      answer.pause();
      await until('something waits to be taken', () => waits(reader));
    },
    /** A read of a file that is still looked for. */
    look(client: string) {
      const raw = new EventEmitter();
      const reply = { raw, request: { headers: { 'x-client': client } } };
      return { turn: reads.take(reply as unknown as FastifyReply), leave: () => raw.emit('close') };
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      // One test's timers are gone before those of the next are counted.
      await until('nothing is read any more', () => sources.every(({ closed }) => closed));
    },
  };
}

test('a reader that takes nothing of a far file loses its place after a minute or two; one that is slow keeps it', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  await using world = await open();
  const { ask, sockets } = world;
  const [idle, slow] = [await ask('a', 'idle'), await ask('a', 'slow')];
  await world.full('idle', 'slow');
  for (let minute = 0; minute < 3; minute++) {
    t.mock.timers.tick(MINUTE_MS);
    await world.read(slow, 'slow', 0);
  }
  await until('the idle one is ended', () => sockets.get('idle')!.destroyed);
  assert.equal(sockets.get('slow')!.destroyed, false);
  idle.destroy();
  // Seven more have a place beside the slow one.
  const more = await Promise.all(Array.from({ length: PER_CLIENT - 1 }, (_, n) => ask('a', `${n}`)));
  for (const answer of [...more, slow]) answer.destroy();
});

test('where strangers have no place left and one waits, the slowest reader goes: after a minute, and none of our own', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  await using world = await open();
  const { ask, look, sockets } = world;
  const answers = [
    await ask('own', 'own'),
    await ask('a', 'quick'),
    await ask('b', 'slow'),
    await ask('c', 'silent', '/silent'),
  ];
  await world.full('own', 'quick', 'slow');
  await world.read(answers[1]!, 'quick', MUCH_BYTES);
  const ended = () => [...sockets].flatMap(([reader, { destroyed }]) => (destroyed ? [reader] : []));
  // 28 clients have all that there is, eight each.
  const others = Array.from({ length: STRANGERS / PER_CLIENT - 3 }, (_, n) => `${n}`);
  for (const client of ['a', 'b', 'c', ...others]) {
    const count = others.includes(client) ? PER_CLIENT : PER_CLIENT - 1;
    for (let n = 0; n < count; n++) await look(client).turn;
  }

  const early = look('new');
  early.leave();
  await assert.rejects(early.turn, 'nobody has had its place for a minute');
  t.mock.timers.tick(MINUTE_MS);
  assert.deepEqual(ended(), [], 'nobody waits');
  await look('new').turn;
  assert.deepEqual(ended(), ['slow']);
  const again = look('b');
  assert.deepEqual(ended(), ['slow'], 'whoever comes back would have as many as the others');
  await look('new').turn;
  assert.deepEqual(ended(), ['quick', 'slow']);
  again.leave();
  await assert.rejects(again.turn, 'whoever has more waits');
  for (const answer of answers) answer.destroy();
});
