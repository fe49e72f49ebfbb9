import { Socket } from 'node:net';
import type { onSendHookHandler } from 'fastify';
import { type ClientOptions, createExemption } from '../limits/client.ts';

/** How long the reader of an answer may take nothing of what waits for it: at most twice as long goes by until it is ended. */
const TAKING_MS = 60_000;
/**
 * Our own have so many times as long: a proxy that reads ahead, nginx a gigabyte, takes nothing more until its client has taken that, and
 * ends a client that takes nothing by itself.
 */
const OURS_TIMES = 30;
/** Smaller answers wait in the kernel, and hold nothing here. */
const WATCHED_BYTES = 64 * 1024;

/** Of a stream nobody knows how much comes. */
const isWatched = (payload: unknown): boolean =>
  typeof payload === 'string' || Buffer.isBuffer(payload)
    ? payload.length >= WATCHED_BYTES
    : typeof payload === 'object' && payload !== null;

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
      const times = isOurs(socket.remoteAddress ?? '') ? OURS_TIMES : 1;
      // A socket counts as idle when nothing of what is written to it leaves, however large it is.
      raw.setTimeout(takingMs * times, () => {
        // What comes slowly is no fault of whoever reads it.
        if (raw.writableLength === 0) return;
        request.log.debug('an answer of which nothing was taken is ended');
        raw.destroy();
      });
      // Before Node sets what the connection has next: time until another request comes, or that of an answer that waits behind.
      raw.prependListener('finish', () => socket.setTimeout(0));
    }
    done();
  };
}
