import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import type { FastifyReply } from 'fastify';
import { FileReads } from './file-reads.ts';
import { FAIR_BYTES } from './flows.ts';
import { TestReader } from './testing/reader.ts';

const PER_CLIENT = 8;
const STRANGERS = 224;
const MINUTE_MS = 60_000;

/** More than the buffers of two sockets hold. */
const endless = () =>
  Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(64 * 1024);
    })(),
  );
/** As of a store that has sent nothing yet. */
const silent = () => new Readable({ read() {} });

const log = { debug() {} };
const clientOf = (asked: { readonly headers: IncomingMessage['headers'] }) => {
  const key = String(asked.headers['x-client']);
  return { key, isExempt: key === 'own' };
};

/** A server of far files. */
async function open() {
  const reads = new FileReads(clientOf as never, { letGo: () => {} });
  const sockets = new Map<string, Socket>();
  const sources: Readable[] = [];
  const server = createServer(async (asked, raw) => {
    const reply = { raw, log, request: { raw: asked, headers: asked.headers } };
    using place = await reads.take(reply as unknown as FastifyReply);
    raw.flushHeaders();
    const bytes = endless();
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
    async ask(client: string, reader: string): Promise<IncomingMessage> {
      const headers = { 'x-client': client, 'x-reader': reader };
      const asked = request({ port, headers, agent: false })
        .on('error', () => {})
        .end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      return answer.on('error', () => {});
    },
    /** Has the buffers of each fill up. */
    full: (...readers: string[]) => until('something waits to be taken', () => readers.every(waits)),
    /** Takes some bytes, and then nothing more. */
    async read(answer: IncomingMessage, reader: string): Promise<void> {
      const socket = sockets.get(reader)!;
      const before = socket.bytesWritten;
      answer.resume();
      await until('it takes some', () => socket.bytesWritten > before);
      answer.pause();
      await until('something waits to be taken', () => waits(reader));
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
    await world.read(slow, 'slow');
  }
  await until('the idle one is ended', () => sockets.get('idle')!.destroyed);
  assert.equal(sockets.get('slow')!.destroyed, false);
  idle.destroy();
  // Seven more have a place beside the slow one.
  const more = await Promise.all(Array.from({ length: PER_CLIENT - 1 }, (_, n) => ask('a', `${n}`)));
  for (const answer of [...more, slow]) answer.destroy();
});

/** Readers of far files that have nothing yet, and what is still looked for. */
function openByHand() {
  const reads = new FileReads(clientOf as never, { letGo: () => {} });
  return {
    async read(client: string): Promise<TestReader> {
      const reader = new TestReader(client);
      using place = await reads.take(reader.reply);
      place.keepFor(silent());
      return reader;
    },
    look(client: string) {
      const reader = new TestReader(client);
      return { turn: reads.take(reader.reply), leave: () => reader.leave() };
    },
  };
}

test('where strangers have no place left and one waits, a slow reader goes: after a minute, and none of our own', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { read, look } = openByHand();
  const names = ['own', 'quick', 'slow', 'slower', 'patient'] as const;
  const [own, quick, slow, slower, patient] = [
    await read('own'),
    await read('a'),
    await read('b'),
    await read('c'),
    await read('d'),
  ];
  const ended = () =>
    [own, quick, slow, slower, patient].flatMap(({ isEnded }, n) => (isEnded ? [names[n]] : []));
  // 28 clients have all that there is, eight each.
  const others = Array.from({ length: STRANGERS / PER_CLIENT - 4 }, (_, n) => `${n}`);
  for (const client of ['a', 'b', 'c', 'd', ...others]) {
    const count = others.includes(client) ? PER_CLIENT : PER_CLIENT - 1;
    for (let n = 0; n < count; n++) await look(client).turn;
  }
  quick.take(FAIR_BYTES);
  slow.take(FAIR_BYTES - 1);
  slower.take(FAIR_BYTES - 2);
  patient.socket.writableLength = 0;

  const early = look('new');
  early.leave();
  await assert.rejects(early.turn, 'nobody has had its place for a minute');
  t.mock.timers.tick(MINUTE_MS);
  assert.deepEqual(ended(), [], 'nobody waits');
  await look('new').turn;
  assert.deepEqual(ended(), ['slower']);
  const again = look('c');
  assert.deepEqual(ended(), ['slower'], 'whoever comes back would have as many as the others');
  await look('new').turn;
  assert.deepEqual(ended(), ['slow', 'slower']);
  const last = look('new');
  assert.deepEqual(ended(), ['slow', 'slower'], 'nobody else is slow');
  await look('newer').turn;
  assert.deepEqual(
    ended(),
    ['quick', 'slow', 'slower'],
    'it had none, and the client of the quick one eight',
  );
  for (const { turn, leave } of [again, last]) {
    leave();
    await assert.rejects(turn, 'it waits');
  }
  for (const reader of [own, patient]) reader.leave();
});

test('the place that a slow reader loses is for whoever was next, not for another reader of the same client', async (t) => {
  // Each is looked at after ten seconds.
  t.mock.method(Math, 'random', () => 0);
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { read, look } = openByHand();
  const first = await read('first');
  t.mock.timers.tick(1_000);
  const second = await read('second');
  for (let n = 0; n < STRANGERS - 3; n++) await look(`${n}`).turn;
  const place = await look('next').turn;
  const [again, next, newest] = [look('first'), look('next'), look('newest')];
  place[Symbol.dispose]();
  await newest.turn;
  // Who is next was served later than the first.
  t.mock.timers.tick(9_000);
  await next.turn;
  assert.deepEqual([first.isEnded, second.isEnded], [true, false]);
  again.leave();
  await assert.rejects(again.turn, 'it waits');
  second.leave();
});
