import type { Turns } from '@skerry/database';
import { type Client, FairSlots } from '@skerry/kit';
import type { FastifyReply } from 'fastify';
import type { Kysely } from 'kysely';
import { askedBy } from '../../state/lists/time-limit.ts';
import type { Schema } from '../../store/schema.ts';
import { closing } from './closing.ts';

/** Lists and totals that take longer than nearly all do: the database's other connections are for everybody else. */
const LONG_LISTS = {
  running: { total: 4, reserve: 1, perClient: 2 },
  waiting: { total: 100, reserve: 10, perClient: 8 },
  waitMs: 10_000,
  what: 'lists that take long',
  /** Seconds. */
  retryAfter: 5,
} as const;

/** Of lists that take long, few are read at once, and of one client fewer. */
export class LongLists {
  readonly #slots = new FairSlots(LONG_LISTS);
  readonly #clientOf: (request: FastifyReply['request']) => Client;

  constructor(clientOf: (request: FastifyReply['request']) => Client) {
    this.#clientOf = clientOf;
  }

  /** Those of whoever is answered. They throw RATE_LIMITED, OVERLOADED, and the signal's reason where the caller leaves. */
  turnsOf(reply: FastifyReply): Turns {
    const client = this.#clientOf(reply.request);
    let gone: AbortSignal | undefined;
    return {
      isFree: () => this.#slots.isFreeFor(client),
      take: () => {
        gone ??= closing(reply);
        return this.#slots.take(client, gone);
      },
    };
  }

  /** The same database, for lists of whoever is answered. */
  askedIn(db: Kysely<Schema>, reply: FastifyReply): Kysely<Schema> {
    return askedBy(db, this.turnsOf(reply));
  }
}
