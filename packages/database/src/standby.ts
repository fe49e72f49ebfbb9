import { AsyncLocalStorage } from 'node:async_hooks';
import { Failures, type Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { Kysely, PostgresDialect } from 'kysely';
import type pg from 'pg';
import { createPool } from './connect.ts';
import { asDatabaseError, isTooLong } from './failure.ts';
import { type Reached, reachOf } from './hosts.ts';
import { findLimits } from './limits.ts';
import { type ConnectionTurns, partOf } from './shares/pool-part.ts';
import { Watch } from './watch.ts';

/** Nobody waits longer for a standby: the primary answers. */
const CONNECTION_WAIT_MS = 1_000;
/** One that could not be reached is not asked for so long, at most. */
const REST_MAX_MS = 10_000;

/** Who answered a query that a standby might: one that was fresh enough, or the primary since none was or since it failed. */
export type ReadOutcome = 'standby' | 'behind' | 'failed';

interface ReadingOptions {
  /** Asks a server how far it is. It only ever goes on, as long as the connection lasts. */
  readonly readPlace: (client: pg.PoolClient) => Promise<number>;
  readonly note: (outcome: ReadOutcome) => void;
  /** Turns of whoever reads; without them nobody waits for anybody's share. */
  readonly turns?: ConnectionTurns;
}

/** What of a connection the query builder uses. */
type Connection = Pick<pg.PoolClient, 'query' | 'release'>;

/** A server that follows the primary and answers reads, or several behind one address. The node works without it. */
export class Standby implements AsyncDisposable {
  readonly #pool: pg.Pool;
  readonly #watch: Watch;
  readonly #failures: Failures;
  #restsUntilMs = 0;
  /** How far the server of each connection was when it was last asked. */
  readonly #places = new WeakMap<pg.PoolClient, number>();
  /** Where a standby has to be that answers what is asked now. */
  readonly #wanted = new AsyncLocalStorage<number>();

  private constructor(connection: Reached, log: Logger) {
    this.#pool = createPool(connection, { log, waitMs: CONNECTION_WAIT_MS });
    this.#watch = new Watch(connection, this.#pool, log);
    const what = 'the standby cannot be read from; the primary answers in its place';
    this.#failures = new Failures({ log, what, maxMs: REST_MAX_MS });
  }

  /** Throws INVALID_CONFIG where the connection string names several hosts. One that does not answer is no failure. */
  static async open({ url, log }: { readonly url: string; readonly log: Logger }): Promise<Standby> {
    const connection = reachOf(url);
    if (connection.primary)
      throw new AppError(
        'INVALID_CONFIG',
        'DATABASE_READ_URL names one host: put a balancer in front of several standbys',
      );
    return new Standby({ ...connection, ...(await findLimits(connection, log)) }, log);
  }

  /** Queries within `body` may be answered by a standby that has come to `place`. */
  run<T>(place: number, body: () => T): T {
    return this.#wanted.run(place, body);
  }

  /** The place, within `run`. */
  get wanted(): number | undefined {
    return this.#wanted.getStore();
  }

  /** How many connections readers may have to it at once. */
  get connectionsMax(): number {
    return this.#pool.options.max;
  }

  /** A database whose queries go to the primary, or within `run` to a standby that is far enough. Transactions within it only read. */
  createDatabase<Schema>(primary: pg.Pool, options: ReadingOptions): Kysely<Schema> {
    const { turns } = options;
    const own = turns ? partOf(this.#pool, turns) : this.#pool;
    const pool = {
      connect: async (): Promise<Connection> => {
        const place = this.#wanted.getStore();
        const found = place === undefined ? undefined : await this.#find(own, place, primary, options);
        return found ?? primary.connect();
      },
      end: async () => {},
    };
    return new Kysely<Schema>({ dialect: new PostgresDialect({ pool: pool as unknown as pg.Pool }) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watch[Symbol.dispose]();
    await this.#pool.end();
  }

  async #find(
    own: Pick<pg.Pool, 'connect'>,
    place: number,
    primary: pg.Pool,
    options: ReadingOptions,
  ): Promise<Connection | undefined> {
    const { note, readPlace } = options;
    if (performance.now() < this.#restsUntilMs) {
      note('failed');
      return undefined;
    }
    let client: pg.PoolClient | undefined;
    try {
      client = await own.connect();
      let at = this.#places.get(client) ?? -1;
      if (at < place) {
        at = await readPlace(client);
        this.#places.set(client, at);
      }
      this.#failures.clear();
      if (at >= place) {
        note('standby');
        return fallingBack(client, primary, () => note('failed'));
      }
      client.release();
      note('behind');
    } catch (error) {
      client?.release(true);
      // It is there: whoever asks waited for itself, or for others.
      if (isRefused(error)) throw error;
      this.#restsUntilMs = performance.now() + this.#failures.note(error);
      note('failed');
    }
    return undefined;
  }
}

/** Whether a turn was not given, rather than a connection. */
const isRefused = (error: unknown): boolean =>
  error instanceof AppError ? error.code !== 'DATABASE_UNAVAILABLE' : (error as Error).name === 'AbortError';

/**
 * A connection to a standby whose queries the primary answers where the standby fails: it may be restarted, or end what holds its
 * replay up (40001). Not in the middle of a transaction, which is answered as a passing fault.
 */
function fallingBack(client: pg.PoolClient, primary: pg.Pool, onFailed: () => void): Connection {
  let isWithin = false;
  let isBroken = false;
  const query = async (text: string, values?: unknown[]) => {
    if (/^(begin|start transaction)/i.test(text)) isWithin = true;
    else if (/^(commit|rollback$)/i.test(text)) isWithin = false;
    try {
      return await client.query(text, values);
    } catch (error) {
      // What took too long here does so there as well.
      if (isTooLong(error) || !asDatabaseError(error)) throw error;
      onFailed();
      isBroken = true;
      if (isWithin) throw error;
      return primary.query(text, values);
    }
  };
  return { query: query as Connection['query'], release: () => client.release(isBroken) };
}
