import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import pg from 'pg';
import { isPassingCode } from './failure.ts';
import { PrimaryClient, type Reached } from './hosts.ts';

/** A server that starts together with the node, or takes over from another, is there within this. */
const PATIENCE_MS = 30_000;
const RETRY_DELAY_MS = { first: 50, max: 2_000 };
const CONNECT_TIMEOUT_MS = 10_000;

/** The oldest release that the migrations are tested with. */
const SERVER_VERSION_MIN = 15;

const DUPLICATE_DATABASE = '42P04';
/** Two that create a database at the same time: the second may fail on the catalogue's own index. */
const UNIQUE_VIOLATION = '23505';

/**
 * Connects once, waiting for a server that is not up yet, and looks whether it can hold our data.
 * Throws DATABASE_UNAVAILABLE or DATABASE_INCOMPATIBLE; neither message holds the password.
 */
export async function connectWithPatience(
  connection: Reached,
  {
    log,
    signal,
    patienceMs = PATIENCE_MS,
  }: { log: Logger; signal?: AbortSignal | undefined; patienceMs?: number },
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  let told = '';
  for (let delayMs = RETRY_DELAY_MS.first; ; delayMs = Math.min(delayMs * 2, RETRY_DELAY_MS.max)) {
    try {
      return await checkServer(connection);
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (!isPassing(error) || performance.now() + delayMs > deadline) throw unavailable(error);
      const reason = describe(error);
      if (reason !== told) log.warn({ reason }, 'the database does not answer yet; trying again');
      told = reason;
    }
    await delay(delayMs, undefined, signal === undefined ? {} : { signal });
  }
}

/** Makes a database in a server if it is not there. */
export async function ensureDatabase(connection: Reached, name: string): Promise<void> {
  await withClient(connection, async (client) => {
    const found = await client.query('select from pg_database where datname = $1', [name]);
    if (found.rowCount !== 0) return;
    await client.query(`create database ${pg.escapeIdentifier(name)}`).catch((error: pg.DatabaseError) => {
      if (error.code !== DUPLICATE_DATABASE && error.code !== UNIQUE_VIOLATION) throw error;
    });
  });
}

/** One connection, closed afterwards whatever happens. */
export async function withClient<T>(
  connection: Reached,
  body: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new PrimaryClient({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...connection });
  try {
    await client.connect();
    return await body(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Whether the same attempt may succeed later without anybody changing anything. */
export function isPassing(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isPassing);
  const code = (error as { code?: unknown }).code;
  // The pg client's own errors (a connection that closed or timed out during the handshake) carry no code.
  if (typeof code !== 'string') return true;
  return isPassingCode(code);
}

async function checkServer(connection: Reached): Promise<void> {
  const { rows } = await withClient(connection, (client) =>
    client.query<{ version: string; encoding: string }>(
      `select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding`,
    ),
  );
  const version = Math.floor(Number(rows[0]?.version) / 10_000);
  if (version < SERVER_VERSION_MIN) {
    const message = `The database server is PostgreSQL ${version}; ${SERVER_VERSION_MIN} or later is needed.`;
    throw new AppError('DATABASE_INCOMPATIBLE', message);
  }
  if (rows[0]?.encoding !== 'UTF8') {
    const message = `The database has the encoding ${rows[0]?.encoding}: create it with ENCODING 'UTF8'.`;
    throw new AppError('DATABASE_INCOMPATIBLE', message);
  }
}

function unavailable(cause: unknown): AppError {
  return new AppError('DATABASE_UNAVAILABLE', `The database does not answer: ${describe(cause)}`, { cause });
}

/** A host with several addresses fails with an error for each, and no sentence of its own. */
function describe(error: unknown): string {
  const first: unknown = error instanceof AggregateError && error.message === '' ? error.errors[0] : error;
  return first instanceof Error ? first.message : String(first);
}
