import { createHash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from '@skerry/kit';
import pg from 'pg';
import { type Database, openPool } from '../connect.ts';
import { readProcess } from '../embedded/process.ts';
import { migrate } from '../migrate.ts';
import { readMigrations } from '../migrations.ts';
import { withClient } from '../reach.ts';
import { findTestServer } from './server.ts';

const TEST_CONNECTIONS_MAX = 4;
const MAINTENANCE_IDLE_MS = 1_000;

/** Any number that only these tests use: pg_advisory_lock on it guards the making of a template. */
const TEMPLATE_LOCK = 0x534b_5259;

export interface TestDatabaseOptions {
  /** Directory of the migrations that the database has; without it the database is empty. */
  readonly migrations?: string | undefined;
  /** What else the template holds; it is told from others by its name. */
  readonly prepared?: { readonly name: string; fill(database: Database<unknown>): Promise<void> } | undefined;
  /** Connections of its pool, for a test in which many wait for one another. */
  readonly connectionsMax?: number | undefined;
  /** Another server than the shared one. */
  readonly serverUrl?: string | undefined;
  readonly log: Logger;
}

export interface TestDatabase<Schema> extends Database<Schema> {
  readonly name: string;
  /** postgresql://… of this database. */
  readonly url: string;
}

/**
 * A database of its own for one test, dropped on disposal: `await using db = await createTestDatabase({…})`.
 * It is cloned from a template that holds the migrations, made once per server. The server is the one of
 * SKERRY_TEST_DATABASE_URL, or an embedded one that belongs to this process and ends with it.
 */
export async function createTestDatabase<Schema>(
  options: TestDatabaseOptions,
): Promise<TestDatabase<Schema>> {
  const serverUrl = options.serverUrl ?? (await findTestServer(options.log));
  const isShared = options.serverUrl === undefined;
  await sweepOnce(serverUrl);
  const template =
    options.migrations === undefined
      ? 'template0'
      : await ensureTemplate(serverUrl, options.migrations, options);
  const name = `${prefixOfProcess(process.pid)}${randomBytes(4).toString('hex')}`;
  await maintain(serverUrl, isShared, createStatement(name, template));
  const url = databaseUrlOf(serverUrl, name);
  const database = await openPool<Schema>(
    { connectionString: url },
    { log: options.log, connectionsMax: options.connectionsMax ?? TEST_CONNECTIONS_MAX },
  );
  return {
    ...database,
    name,
    url,
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]();
      await maintain(serverUrl, isShared, dropStatement(name));
    },
  };
}

/** What is done again and again on a server that all tests of this process share: a connection costs as much as a copy. */
const shared = new Map<string, pg.Pool>();

function sharedPool(serverUrl: string): pg.Pool {
  const known = shared.get(serverUrl);
  if (known) return known;
  // It keeps no process from ending, and is soon closed where nobody makes databases any more.
  const pool = new pg.Pool({
    connectionString: serverUrl,
    max: 1,
    idleTimeoutMillis: MAINTENANCE_IDLE_MS,
    allowExitOnIdle: true,
  });
  // The server has ended before the process: the next statement connects anew or says why it cannot.
  pool.on('error', () => {});
  shared.set(serverUrl, pool);
  return pool;
}

async function maintain(serverUrl: string, isShared: boolean, statement: string): Promise<void> {
  if (isShared) await sharedPool(serverUrl).query(statement);
  else await withClient({ connectionString: serverUrl }, (client) => client.query(statement));
}

/** The same server, another database. */
export function databaseUrlOf(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}

/** Templates that this process knows to be there: a server and a name. */
const made = new Set<string>();

type Filling = Pick<TestDatabaseOptions, 'prepared' | 'log'>;

async function ensureTemplate(serverUrl: string, directory: string, filling: Filling): Promise<string> {
  const migrations = await readMigrations(directory);
  const hash = createHash('sha256').update(
    JSON.stringify([filling.prepared?.name, ...migrations.map(({ name, checksum }) => [name, checksum])]),
  );
  const template = `skerry_template_${hash.digest('hex').slice(0, 16)}`;
  const partial = `${template}_new`;
  if (made.has(`${serverUrl} ${template}`)) return template;
  await withClient({ connectionString: serverUrl }, async (client) => {
    // Held until this connection closes.
    await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    const found = await client.query('select from pg_database where datname = $1', [template]);
    if (found.rowCount !== 0) return;
    await client.query(dropStatement(partial));
    await client.query(createStatement(partial, 'template0'));
    await fill(databaseUrlOf(serverUrl, partial), directory, filling);
    await client.query(
      `alter database ${pg.escapeIdentifier(partial)} rename to ${pg.escapeIdentifier(template)}`,
    );
  });
  made.add(`${serverUrl} ${template}`);
  return template;
}

async function fill(url: string, directory: string, { prepared, log }: Filling): Promise<void> {
  await using database = await openPool(
    { connectionString: url },
    { log, connectionsMax: TEST_CONNECTIONS_MAX },
  );
  await migrate({ pool: database.pool, directory, log });
  await prepared?.fill(database);
}

/** A copy of the template's files takes half the time of one through the log, which is for templates that are large or in use. */
function createStatement(name: string, template: string): string {
  const encoding = template === 'template0' ? `encoding 'UTF8'` : '';
  return `create database ${pg.escapeIdentifier(name)} template ${pg.escapeIdentifier(template)} strategy file_copy ${encoding}`;
}

const dropStatement = (name: string) => `drop database if exists ${pg.escapeIdentifier(name)} with (force)`;

/** A name says which process on which machine made it, so that others can drop what a killed one left. */
function prefixOfProcess(pid: number | ''): string {
  const machine = createHash('sha256').update(hostname()).digest('hex').slice(0, 6);
  return `skerry_test_${machine}_${pid}${pid === '' ? '' : '_'}`;
}

const sweeps = new Map<string, Promise<void>>();

function sweepOnce(serverUrl: string): Promise<void> {
  const started = sweeps.get(serverUrl) ?? sweep({ connectionString: serverUrl });
  sweeps.set(serverUrl, started);
  return started;
}

async function sweep(server: pg.ClientConfig): Promise<void> {
  const prefix = prefixOfProcess('');
  const { rows } = await withClient(server, (client) =>
    client.query<{ datname: string }>('select datname from pg_database where starts_with(datname, $1)', [
      prefix,
    ]),
  );
  for (const { datname } of rows) {
    const pid = Number(datname.slice(prefix.length).split('_')[0]);
    if (readProcess(pid) === undefined)
      await withClient(server, (client) => client.query(dropStatement(datname)));
  }
}
