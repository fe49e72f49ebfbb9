import { type Client, type Handlers, Slots } from '@skerry/kit';
import type { STATE_API } from '@skerry/protocol/api/core/state';
import type { FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import { digestDerived, digestInstances, digestMessages, digestState, readMark } from '../state/digest.ts';
import { CONNECTIONS } from '../store/connections.ts';
import type { Schema } from '../store/schema.ts';
import type { Rooms } from './rooms.ts';
import { CLOCK, type Clock, restAfter } from './shares/paced.ts';

/** Milliseconds: nobody waits longer for what took minutes and is over. */
const REST_MAX_MS = 120_000;

/** A reading that did not begin yet. */
interface Planned<T> {
  readonly read: Promise<T>;
  /** Our own do not wait for what strangers have had read. */
  hurry(): void;
}

/**
 * Reading everything has a price: while nothing changed the answer is the same, and callers at once share one reading. Who asks
 * while an older state is read waits, and shares the next reading with all who wait. However often strangers ask, it is read for a quarter
 * of the time at most (restAfter).
 */
class SharedReading<T> {
  readonly #db: Kysely<Schema>;
  readonly #slots: Slots;
  readonly #read: (db: Kysely<Schema>) => Promise<T>;
  readonly #clock: Clock;
  #last: { readonly mark: string; readonly read: Promise<T> } | undefined;
  #next: Planned<T> | undefined;
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  /** Settles, and never fails, when what began last has ended. */
  #ended: Promise<unknown> = Promise.resolve();

  constructor(
    db: Kysely<Schema>,
    slots: Slots,
    read: (db: Kysely<Schema>) => Promise<T>,
    clock: Clock = CLOCK,
  ) {
    this.#db = db;
    this.#slots = slots;
    this.#read = read;
    this.#clock = clock;
  }

  async ask({ isExempt }: Pick<Client, 'isExempt'>): Promise<T> {
    const mark = await readMark(this.#db);
    if (this.#last?.mark === mark) return this.#last.read;
    this.#next ??= this.#plan();
    if (isExempt) this.#next.hurry();
    return this.#next.read;
  }

  #plan(): Planned<T> {
    const { promise: rested, resolve: hurry } = Promise.withResolvers<void>();
    this.#rest(hurry).catch(hurry);
    return { read: rested.then(() => this.#slots.run(() => this.#begin())), hurry };
  }

  /** How long the next one rests is known when the one under way has ended. What has not changed by then is not read again. */
  async #rest(hurry: () => void): Promise<void> {
    await this.#ended;
    const isSame = this.#last !== undefined && this.#last.mark === (await readMark(this.#db));
    const restMs = isSame ? 0 : this.#restsUntilMs - this.#clock.now();
    if (restMs > 0) this.#clock.later(hurry, restMs);
    else hurry();
  }

  #begin(): Promise<T> {
    this.#next = undefined;
    const begun = this.#readUnlessSame();
    this.#ended = begun.catch(() => {});
    return begun;
  }

  async #readUnlessSame(): Promise<T> {
    const mark = await readMark(this.#db);
    // Whoever asked while that was looked up is next, though nothing changed.
    if (this.#last?.mark === mark) return this.#last.read;
    const reading = { mark, read: this.#readNow() };
    reading.read.catch(() => {
      if (this.#last === reading) this.#last = undefined;
    });
    this.#last = reading;
    return reading.read;
  }

  async #readNow(): Promise<T> {
    const { now } = this.#clock;
    const beganMs = now();
    try {
      return await this.#read(this.#db);
    } finally {
      const endMs = now();
      this.#restsUntilMs = endMs + restAfter(endMs - beganMs, REST_MAX_MS);
    }
  }
}

/** State: what two nodes compare to see that they agree, and anybody can compute anew (docs/decisions.md 3). */
export function stateHandlers(
  { db, commonDb, clientOf }: Pick<Rooms, 'db' | 'commonDb' | 'clientOf'>,
  clock: Clock = CLOCK,
): Handlers<typeof STATE_API> {
  // They take minutes on a large node, and a connection to its database each.
  const [everything, instances] = [new Slots(CONNECTIONS.digests), new Slots(CONNECTIONS.digests)];
  const shared = <T>(slots: Slots, read: (db: Kysely<Schema>) => Promise<T>) => {
    const reading = new SharedReading(commonDb, slots, read, clock);
    return ({ request }: { readonly request: FastifyRequest }) => reading.ask(clientOf(request));
  };
  return {
    getStateDigest: shared(everything, digestState),
    getMessagesDigest: () => digestMessages(db),
    getDerivedDigests: shared(everything, digestDerived),
    getInstancesDigest: shared(instances, digestInstances),
  };
}
