import type { FastifyReply } from 'fastify';

/** Ends when the caller is gone, or has the answer. Not the socket is listened to: it outlives the request. */
export function closing({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal {
  const gone = new AbortController();
  // Who left while something else was waited for is not heard of again.
  if (raw.destroyed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}
