import { AsyncLocalStorage } from 'node:async_hooks';
import type { ConnectionTurns } from '@skerry/database';
import { type Client, FairSlots, type HttpServer } from '@skerry/kit';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { closing } from './closing.ts';

/**
 * The database's connections for answers. Of what takes a millisecond a client has as many at once as it likes to ask for; with its half
 * of them it waits for itself, and others are served as if it asked for nothing.
 */
const turnsOf = (connections: number) => ({
  running: {
    total: connections,
    reserve: connections > 1 ? 1 : 0,
    perClient: Math.max(1, Math.floor(connections / 2)),
  },
  waiting: { total: 2_000, reserve: 200, perClient: 200 },
  waitMs: 10_000,
  what: 'reads of the database',
  /** Seconds. */
  retryAfter: 1,
});

/** The node: what it reads for everybody waits for nobody's share. */
const OWN: Pick<Client, 'key' | 'isExempt'> = { key: 'the node', isExempt: true };

type Asker = Pick<FastifyReply, 'raw'> & { readonly client: Pick<Client, 'key' | 'isExempt'> };

/** Turns for connections to one database. They throw RATE_LIMITED, OVERLOADED, and the caller's leaving. */
interface AskersTurns {
  /** Of whoever is answered; the node's where nobody is. */
  readonly each: ConnectionTurns;
  /** For what is read once for many: it would wait for the share of whoever happened to ask first. */
  readonly common: ConnectionTurns;
}

/** For whom databases are asked on the way to an answer: each client has its share of the connections that there are for answers. */
export class Askers {
  readonly #asker = new AsyncLocalStorage<Asker>();

  /** @param connections for answers, to one database */
  open(connections: number): AskersTurns {
    const slots = new FairSlots(turnsOf(connections));
    const turns = (take: () => Promise<Disposable>): ConnectionTurns => ({
      take,
      get waiting() {
        return slots.waiting;
      },
    });
    return {
      each: turns(() => takeFor(slots, this.#asker.getStore())),
      common: turns(() => slots.take(OWN)),
    };
  }

  /** Has what a server's routes read count to whom they answer. */
  watch(app: HttpServer, clientOf: (request: FastifyRequest) => Client): void {
    // Not before: where a body comes, what follows it begins anew.
    app.addHook('preHandler', (request, reply, done) => {
      this.#asker.run({ client: clientOf(request), raw: reply.raw }, done);
    });
  }
}

function takeFor(slots: FairSlots, asker: Asker | undefined): Promise<Disposable> {
  if (!asker) return slots.take(OWN);
  const { client } = asker;
  return slots.take(client, slots.isFreeFor(client) ? undefined : closing(asker));
}
