import type { Turns } from '@skerry/database';
import { type Client, FairSlots } from '@skerry/kit';
import type { FastifyReply } from 'fastify';
import type { Kysely } from 'kysely';
import { askedBy } from '../../state/lists/time-limit.ts';
import { CONNECTIONS } from '../../store/connections.ts';
import type { Schema } from '../../store/schema.ts';
import { closing } from './closing.ts';

/** Seconds. */
const RETRY_AFTER = 5;

/** Lists and totals that take longer than nearly all do: the database's other connections are for everybody else. */
const LONG_LISTS = {
  running: { total: CONNECTIONS.lists, reserve: 1, perClient: 2 },
  waiting: { total: 100, reserve: 10, perClient: 8 },
  waitMs: 10_000,
  what: 'lists that take long',
  retryAfter: RETRY_AFTER,
} as const;

/** Those that show whether they take long, a quarter of a second each. Whoever asks for many at once, nearly all cheap, waits for itself. */
const TRIES = {
  running: { total: CONNECTIONS.tries, reserve: 0, perClient: 1 },
  waiting: { total: 1_000, reserve: 100, perClient: 100 },
  waitMs: 10_000,
  what: 'lists',
  retryAfter: RETRY_AFTER,
} as const;

/** Of lists that take long, few are read at once, and of one client fewer. */
export class LongLists {
  readonly #slots = new FairSlots(LONG_LISTS);
  readonly #tries = new FairSlots(TRIES);
  readonly #clientOf: (request: FastifyReply['request']) => Client;

  constructor(clientOf: (request: FastifyReply['request']) => Client) {
    this.#clientOf = clientOf;
  }

  /**
   * Those of whoever is answered. They throw RATE_LIMITED, OVERLOADED, and the signal's reason where the caller leaves.
   * @param goneOf the signal of a caller that leaves; asked for where something waits
   */
  turnsOf(reply: FastifyReply, goneOf: () => AbortSignal = () => closing(reply)): Turns {
    const client = this.#clientOf(reply.request);
    let known: AbortSignal | undefined;
    const gone = () => {
      known ??= goneOf();
      return known;
    };
    return {
      isFree: () => this.#slots.isFreeFor(client),
      take: () => this.#slots.take(client, gone()),
      takeTry: () => this.#tries.take(client, gone()),
    };
  }

  /** The same database, for lists of whoever is answered. @param goneOf see `turnsOf` */
  askedIn(db: Kysely<Schema>, reply: FastifyReply, goneOf?: () => AbortSignal): Kysely<Schema> {
    return askedBy(db, this.turnsOf(reply, goneOf));
  }
}
