import type { Readable } from 'node:stream';
import { type Client, FairSlots } from '@skerry/kit';
import type { FastifyReply } from 'fastify';
import { Takers } from './takers.ts';

/** Files that clients read at once, from when they are looked for. */
const READS = {
  running: { total: 256, reserve: 32, perClient: 8 },
  waiting: { total: 1_024, reserve: 128, perClient: 64 },
  waitMs: 10_000,
  what: 'files that are read',
  /** Seconds. */
  retryAfter: 2,
} as const;

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

/**
 * Places of those who read files. Where files are behind connections of which there are few (an object store, IPFS), readers wait for
 * these in one line: each client has its share of it. Where somebody waits for others, the slowest reader ends (takers.ts): it may ask
 * for the rest, and wait for its turn as everybody does.
 */
export class FileReads {
  readonly #clientOf: (request: FastifyReply['request']) => Client;
  readonly #slots = new FairSlots(READS);
  readonly #takers = new Takers({ onMinute: () => this.#makeRoom() });

  constructor(clientOf: (request: FastifyReply['request']) => Client) {
    this.#clientOf = clientOf;
  }

  /** Throws RATE_LIMITED, OVERLOADED. */
  async take(reply: FastifyReply): Promise<ReadPlace> {
    const client = this.#clientOf(reply.request);
    const turn = this.#slots.take(client, closing(reply));
    this.#makeRoom();
    const slot = await turn;
    let isKept = false;
    return {
      keepFor: (bytes) => {
        isKept = true;
        const watch = this.#takers.watch(reply, client, () => {
          this.#slots.noteServed(client);
          slot[Symbol.dispose]();
        });
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

  /** A place for whoever is next of those who wait for others, if there is a reader that it may be taken from: of one at a time. */
  #makeRoom(): void {
    const { next } = this.#slots;
    if (next) this.#takers.endSlowest(next, (key) => this.#slots.heldBy(key));
  }
}
