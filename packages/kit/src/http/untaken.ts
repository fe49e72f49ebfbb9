import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyRequest, onSendHookHandler } from 'fastify';
import { type ClientOptions, createExemption } from '../limits/client.ts';

/** How long the reader of an answer may take nothing of what waits for it: at most twice as long goes by until it is ended. */
const TAKING_MS = 60_000;
/**
 * Our own have so many times as long: a proxy that reads ahead, nginx a gigabyte, takes nothing more until its client has taken that, and
 * ends a client that takes nothing by itself.
 */
const OURS_TIMES = 30;
/**
 * A proxy that nobody here knows, as in the network of a client, reads ahead as well: for what a stranger has taken of an answer, it may
 * take nothing for as long as a line of a mebibyte a second needs to pass that on. Who has taken little has earned nothing.
 */
const EARNED_BYTES_PER_MS = 1024 ** 2 / 1000;
/** Smaller answers wait in the kernel, and hold nothing here. */
const WATCHED_BYTES = 64 * 1024;

/** Of a stream nobody knows how much comes. */
const isWatched = (payload: unknown): boolean =>
  typeof payload === 'string' || Buffer.isBuffer(payload)
    ? payload.length >= WATCHED_BYTES
    : typeof payload === 'object' && payload !== null;

/** How many times `takingMs` a stranger may take nothing after so many bytes. Pure. */
export const timesOf = (takenBytes: number, takingMs: number): number =>
  Math.min(OURS_TIMES, 1 + Math.floor(takenBytes / (takingMs * EARNED_BYTES_PER_MS)));

/** To be called when nothing was taken for `idleMs`: ends the answer where that has been so for as long as its reader may. */
function watchTaking(
  { log, raw: { socket } }: FastifyRequest,
  answer: ServerResponse,
  { idleMs, mayEarn }: { readonly idleMs: number; readonly mayEarn: boolean },
): () => void {
  const before = socket.bytesWritten;
  let [taken, times] = [before, 0];
  return () => {
    // What comes slowly is no fault of whoever reads it.
    if (answer.writableLength === 0) return;
    const now = socket.bytesWritten - socket.writableLength;
    times = now === taken ? times + 1 : 1;
    taken = now;
    if (mayEarn && times < timesOf(now - before, idleMs)) {
      socket.setTimeout(idleMs);
      return;
    }
    log.debug('an answer of which nothing was taken is ended');
    answer.destroy();
  };
}

/**
 * A hook that ends the connection of an answer of which nothing is taken any more: what it holds would be held for as long as its reader
 * likes. What a route writes by itself is the route's own.
 */
export function endUntaken(clients: ClientOptions, takingMs = TAKING_MS): onSendHookHandler {
  const isOurs = createExemption(clients, clients.trustedProxies);
  return (request, { raw }, payload, done) => {
    const { socket } = request.raw;
    // What is asked from within the process has no connection.
    if (isWatched(payload) && socket instanceof Socket) {
      const mayEarn = !isOurs(socket.remoteAddress ?? '');
      const idleMs = mayEarn ? takingMs : takingMs * OURS_TIMES;
      // A socket counts as idle when nothing of what is written to it leaves, however large it is.
      raw.setTimeout(idleMs, watchTaking(request, raw, { idleMs, mayEarn }));
      // Before Node sets what the connection has next: time until another request comes, or that of an answer that waits behind.
      raw.prependListener('finish', () => socket.setTimeout(0));
    }
    done();
  };
}
