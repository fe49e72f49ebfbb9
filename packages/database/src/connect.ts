import type { Logger } from '@skerry/kit';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded/postgres.ts';
import { APPLICATION_NAME } from './holders.ts';
import { type Reached, reachOf } from './hosts.ts';
import { findLimits } from './limits.ts';
import { connectWithPatience, ensureDatabase } from './reach.ts';
import { CheckingClient } from './statements/values.ts';
import { Watch } from './watch.ts';

/** The name of the node's own database in the embedded server. */
export const EMBEDDED_DATABASE = 'skerry';

/** Few are enough: a query takes a millisecond, and two cores run two of them at a time. */
const POOL_CONNECTIONS_MAX = 10;

/** How long a caller waits for a connection of the pool, a new one included. */
const CONNECTION_WAIT_MS = 10_000;

/** Those that a start needs at once are each some mebibytes of the server's memory; the one given back last is used first. */
const IDLE_CONNECTION_MS = 20_000;

/** A machine that is gone is noticed some ten seconds after this, also where nothing is asked of it. */
const KEEP_ALIVE_MS = 10_000;

export interface OpenDatabaseOptions {
  /** postgresql://… of a server, or of several of which one takes writes; without it the embedded PostgreSQL runs in `dataDir`. */
  readonly databaseUrl?: string | undefined;
  /** A directory for the database alone. */
  readonly dataDir: string;
  readonly log: Logger;
  /** Ends the opening, not the open database: dispose of that. */
  readonly signal?: AbortSignal | undefined;
  readonly connectionsMax?: number | undefined;
}

export interface Database<Schema> extends AsyncDisposable {
  readonly pool: pg.Pool;
  /** On the same pool. */
  readonly kysely: Kysely<Schema>;
  /** Where the embedded database has its files; undefined for a server of its own. */
  readonly directory?: string | undefined;
}

/**
 * Opens the node's database and makes sure that it answers. Throws DATABASE_UNAVAILABLE, DATABASE_INCOMPATIBLE (not
 * UTF-8, too old), INVALID_CONFIG, and for the embedded one what startEmbeddedPostgres throws. Disposal waits for the queries that run.
 */
export async function openDatabase<Schema>(options: OpenDatabaseOptions): Promise<Database<Schema>> {
  const { databaseUrl, dataDir, log, signal } = options;
  if (databaseUrl !== undefined) return openPool<Schema>(reachOf(databaseUrl), options);
  const embedded = await startEmbeddedPostgres({ dataDir, log, signal });
  try {
    await ensureDatabase(embedded.connection, EMBEDDED_DATABASE);
    const connection = { ...embedded.connection, database: EMBEDDED_DATABASE, ssl: false };
    return await openPool<Schema>(connection, options, embedded);
  } catch (error) {
    await embedded[Symbol.asyncDispose]();
    throw error;
  }
}

/** @param connection how the pg client reaches the database */
export async function openPool<Schema>(
  connection: Reached,
  options: Pick<OpenDatabaseOptions, 'log' | 'signal' | 'connectionsMax'>,
  embedded?: EmbeddedPostgres,
): Promise<Database<Schema>> {
  await connectWithPatience(connection, options);
  const pool = createPool({ ...connection, ...(await findLimits(connection, options.log)) }, options);
  const watch = new Watch(connection, pool, options.log);
  const kysely = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  return {
    pool,
    kysely,
    directory: embedded?.directory,
    async [Symbol.asyncDispose]() {
      await pool.end();
      watch[Symbol.dispose]();
      await embedded?.[Symbol.asyncDispose]();
    },
  };
}

const INT8 = 20;

/** bigint columns hold seconds, milliseconds, sizes and event numbers, all far below 2^53: read as numbers. */
const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (oid, format) =>
  oid === INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format);

/** @param options.waitMs how long a caller waits for a connection */
export function createPool(
  connection: Reached,
  options: Pick<OpenDatabaseOptions, 'log' | 'connectionsMax'> & { readonly waitMs?: number },
): pg.Pool {
  const pool = new pg.Pool({
    ...connection,
    Client: CheckingClient,
    onConnect: (client) => (client as CheckingClient).prepared.begin(client),
    application_name: APPLICATION_NAME,
    types: { getTypeParser },
    max: options.connectionsMax ?? POOL_CONNECTIONS_MAX,
    connectionTimeoutMillis: options.waitMs ?? CONNECTION_WAIT_MS,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    allowExitOnIdle: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  });
  // The error object holds the whole client, key and all: only its sentence is logged.
  pool.on('error', ({ message }) => {
    if (!pool.ending) options.log.warn({ reason: message }, 'a database connection was lost');
  });
  return pool;
}

type Connection = Pick<pg.PoolClient, 'query' | 'release'>;

/**
 * A connection that one caller keeps: what it asks waits for nobody else's queries, of which there may be more than connections. Where it
 * is lost, the next question gets another one.
 */
export class OwnConnection implements AsyncDisposable {
  readonly #pool: pg.Pool;
  #client: Promise<pg.PoolClient> | undefined;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Queries go one after another: whoever has a transaction has it alone. */
  createDatabase<Schema>(): Kysely<Schema> {
    const connection = {
      query: (text: string, values?: unknown[]) => this.#query(text, values),
      release: () => {},
    } as unknown as Connection;
    const pool = { connect: async () => connection, end: async () => {} };
    return new Kysely<Schema>({ dialect: new PostgresDialect({ pool: pool as unknown as pg.Pool }) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    client?.release();
  }

  async #query(text: string, values: unknown[] | undefined): Promise<pg.QueryResult> {
    this.#client ??= this.#pool.connect();
    const client = this.#client;
    try {
      return await (await client).query(text, values);
    } catch (error) {
      if (this.#client === client) this.#letGo(client);
      throw error;
    }
  }

  /** Whatever state it is in. */
  #letGo(client: Promise<pg.PoolClient>): void {
    this.#client = undefined;
    client.then(
      (one) => one.release(true),
      () => {},
    );
  }
}
