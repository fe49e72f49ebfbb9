import type { Readable } from 'node:stream';
import type { Client, HttpObserver } from '@skerry/kit';
import type { FastifyReply } from 'fastify';
import { closing } from './closing.ts';
import { readingLine } from './flows.ts';
import { Places } from './places.ts';

/** Files that clients read at once, from when they are looked for. */
const READS = {
  running: { total: 256, reserve: 32, perClient: 8 },
  waiting: { total: 1_024, reserve: 128, perClient: 64 },
  waitMs: 10_000,
  what: 'files that are read',
  /** Seconds. */
  retryAfter: 2,
} as const;

/** The place of one read. It is given back when it is disposed of, or when the bytes that it was kept for have come. */
export interface ReadPlace extends Disposable {
  /** @returns the same bytes */
  keepFor(bytes: Readable): Readable;
}

/**
 * Places of those who read files. Where files are behind connections of which there are few (an object store, IPFS), readers keep theirs
 * until they have taken all.
 */
export class FileReads {
  readonly #clientOf: (request: FastifyReply['request']) => Client;
  readonly #places: Places;

  constructor(clientOf: (request: FastifyReply['request']) => Client, observer: Pick<HttpObserver, 'letGo'>) {
    this.#places = new Places(READS, () => observer.letGo('reader'));
    this.#clientOf = clientOf;
  }

  /** Throws RATE_LIMITED, OVERLOADED. */
  async take(reply: FastifyReply): Promise<ReadPlace> {
    const place = await this.#places.take(this.#clientOf(reply.request), closing(reply));
    let isKept = false;
    return {
      keepFor: (bytes) => {
        isKept = true;
        place.watch(readingLine(reply));
        reply.raw.once('close', () => bytes.destroy());
        bytes.once('close', () => place[Symbol.dispose]());
        return bytes;
      },
      [Symbol.dispose]: () => {
        if (!isKept) place[Symbol.dispose]();
      },
    };
  }
}
