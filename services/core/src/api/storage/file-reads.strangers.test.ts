import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import type { FastifyReply } from 'fastify';
import { FileReads } from './file-reads.ts';

const CLIENT = { key: '192.0.2.1', isExempt: false };
const PER_CLIENT = 8;
const MINUTE_MS = 60_000;

/** More than the buffers of two sockets hold. */
const endless = () =>
  Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(64 * 1024);
    })(),
  );

test('a reader that takes nothing of a far file loses its place after a minute or two; one that is slow keeps it', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const reads = new FileReads(() => CLIENT as never);
  const sending: ServerResponse[] = [];
  const server = createServer(async (_request, raw) => {
    using place = await reads.take({ raw } as unknown as FastifyReply);
    place.keepFor(endless()).pipe(raw);
    sending.push(raw);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const ask = async (): Promise<IncomingMessage> => {
      const asked = request({ port, agent: false })
        .on('error', () => {})
        .end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      return answer.on('error', () => {});
    };
    const [idle, slow] = [await ask(), await ask()];
    const isFull = () => sending.length === 2 && sending.every(({ writableNeedDrain }) => writableNeedDrain);
    await until('the buffers of both are full', isFull);
    const sent = () => sending[1]!.socket!.bytesWritten;
    for (let minute = 0; minute < 3; minute++) {
      t.mock.timers.tick(MINUTE_MS);
      const before = sent();
      slow.resume();
      await until('the slow one takes some', () => sent() > before);
      slow.pause();
    }
    await until('the idle one is ended', () => sending[0]!.destroyed);
    assert.equal(sending[1]!.destroyed, false);
    idle.destroy();
    // Seven more have a place beside the slow one.
    const more = await Promise.all(Array.from({ length: PER_CLIENT - 1 }, ask));
    for (const answer of [...more, slow]) answer.destroy();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
