import type { onSendHookHandler } from 'fastify';

/** How long the reader of an answer may take nothing of what waits for it: at most twice as long goes by until it is ended. */
const TAKING_MS = 60_000;
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
export const endUntaken =
  (takingMs = TAKING_MS): onSendHookHandler =>
  (request, { raw }, payload, done) => {
    if (isWatched(payload)) {
      const { socket } = request.raw;
      // A socket counts as idle when nothing of what is written to it leaves, however large it is.
      raw.setTimeout(takingMs, () => {
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
