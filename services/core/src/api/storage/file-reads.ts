import type { Readable } from 'node:stream';
import { type Client, FairSlots } from '@skerry/kit';
import type { FastifyReply } from 'fastify';

/** Files that clients read at once, from when they are looked for. */
const READS = {
  running: { total: 256, reserve: 32, perClient: 8 },
  waiting: { total: 1_024, reserve: 128, perClient: 64 },
  waitMs: 10_000,
  what: 'files that are read',
  /** Seconds. */
  retryAfter: 2,
} as const;
/** How long a reader may take nothing of what it keeps a place for. */
const TAKING_MS = 60_000;

/** Ends when the caller is gone, or has the answer. Not the socket is listened to: it outlives the request. */
export function closing({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal {
  const gone = new AbortController();
  // Who left while something else was waited for is not heard of again.
  if (raw.destroyed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}

/** The place of one read. It is given back when it is disposed of, or when the bytes that it was kept for have come. */
export interface ReadPlace extends Disposable {
  /** @returns the same bytes */
  keepFor(bytes: Readable): Readable;
}

/** Ends a connection whose reader takes nothing, so that it keeps its place no longer. */
function watchTaking({ raw }: FastifyReply): Disposable {
  let before = -1;
  const timer = setInterval(() => {
    const { socket } = raw;
    // What comes slowly is no fault of whoever reads it.
    const isWaiting = socket !== null && socket.writableLength > 0;
    if (isWaiting && socket.bytesWritten === before) raw.destroy();
    before = isWaiting ? socket.bytesWritten : -1;
  }, TAKING_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/**
 * Places of those who read files. Where files are behind connections of which there are few (an object store, IPFS), readers wait for
 * these in one line: each client has its share of it.
 */
export class FileReads {
  readonly #clientOf: (request: FastifyReply['request']) => Client;
  readonly #slots = new FairSlots(READS);

  constructor(clientOf: (request: FastifyReply['request']) => Client) {
    this.#clientOf = clientOf;
  }

  /** Throws RATE_LIMITED, OVERLOADED. */
  async take(reply: FastifyReply): Promise<ReadPlace> {
    const slot = await this.#slots.take(this.#clientOf(reply.request), closing(reply));
    let isKept = false;
    return {
      keepFor(bytes) {
        isKept = true;
        const watch = watchTaking(reply);
        reply.raw.once('close', () => bytes.destroy());
        bytes.once('close', () => {
          watch[Symbol.dispose]();
          slot[Symbol.dispose]();
        });
        return bytes;
      },
      [Symbol.dispose]: () => {
        if (!isKept) slot[Symbol.dispose]();
      },
    };
  }
}
