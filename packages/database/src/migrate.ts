import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { type AppliedMigration, decideMigrations, type Migration, readMigrations } from './migrations.ts';
import { inTransaction } from './transaction.ts';

/** How long to wait for another process that is migrating the same database. */
const TURN_TIMEOUT_MS = 600_000;
/** How often the log says what takes so long: reading every message takes minutes where there are millions. */
const STILL_MS = 30_000;

/** CREATE TABLE IF NOT EXISTS fails on the catalogue's index when two run it at the same time. */
const CREATE_ATTEMPTS_MAX = 5;
const UNIQUE_VIOLATION = '23505';
const DUPLICATE_TABLE = '42P07';
const DUPLICATE_OBJECT = '42710';

const CREATE_TABLE = `
  create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
  )`;

/**
 * Brings the database to the newest migration of `directory`, each migration in one transaction of its own. May run
 * at the same time in several processes: a table lock, which every PostgreSQL has and which ends with its transaction,
 * lets one work and the others find the work done. Returns the names of what this call applied, in order, and the newest version.
 *
 * Throws DATABASE_INCOMPATIBLE if an applied migration was edited or the database is newer than the code (nothing
 * is changed then), MIGRATION_FAILED if a migration cannot be applied (those before it stay).
 */
export async function migrate({
  pool,
  directory,
  log,
  stillMs = STILL_MS,
}: {
  pool: pg.Pool;
  directory: string;
  log: Logger;
  stillMs?: number;
}): Promise<{ applied: string[]; version: number }> {
  const migrations = await readMigrations(directory);
  const applied: string[] = [];
  await createTable(pool);
  // One more turn than there are migrations: the last one finds nothing pending.
  for (let turn = 0; turn <= migrations.length; turn++) {
    const next = await inTransaction(pool, (client) =>
      applyNext(client, migrations, ({ name }) => tellOf(name, log, stillMs)),
    );
    if (next === undefined) break;
    log.info({ migration: next.name }, 'migrated the database');
    applied.push(next.name);
  }
  return { applied, version: migrations.at(-1)?.version ?? 0 };
}

/** Says now and then that it is under way. */
function tellOf(migration: string, log: Logger, everyMs: number): Disposable {
  const startMs = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startMs) / 1000);
    log.info({ migration, seconds }, 'still migrating the database');
  }, everyMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function applyNext(
  client: pg.PoolClient,
  migrations: readonly Migration[],
  watch: (migration: Migration) => Disposable,
): Promise<Migration | undefined> {
  await client.query(`set local lock_timeout = ${TURN_TIMEOUT_MS}; set local statement_timeout = 0`);
  await client.query('lock table schema_migrations in share row exclusive mode');
  const { rows } = await client.query<AppliedMigration>(
    'select version, name, checksum from schema_migrations order by version',
  );
  const [next] = decideMigrations(migrations, rows);
  if (next === undefined) return undefined;
  using _ = watch(next);
  await runMigration(client, next);
  return next;
}

async function runMigration(client: pg.PoolClient, migration: Migration): Promise<void> {
  const before = await findTransactionId(client);
  try {
    // The simple query protocol: one text, many statements.
    await client.query(migration.sql);
  } catch (cause) {
    const message = `The migration ${migration.name} failed: ${describeFailure(cause, migration.sql)}`;
    throw new AppError('MIGRATION_FAILED', message, { cause });
  }
  if ((await findTransactionId(client)) !== before) {
    throw new AppError(
      'MIGRATION_FAILED',
      `The migration ${migration.name} ends its transaction: take out COMMIT and ROLLBACK.`,
    );
  }
  await client.query('insert into schema_migrations (version, name, checksum) values ($1, $2, $3)', [
    migration.version,
    migration.name,
    migration.checksum,
  ]);
}

async function findTransactionId(client: pg.PoolClient): Promise<string | undefined> {
  const { rows } = await client.query<{ id: string }>('select pg_current_xact_id()::text as id');
  return rows[0]?.id;
}

async function createTable(pool: pg.Pool): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await pool.query(CREATE_TABLE);
      return;
    } catch (error) {
      const { code } = error as pg.DatabaseError;
      const raced = code === UNIQUE_VIOLATION || code === DUPLICATE_TABLE || code === DUPLICATE_OBJECT;
      if (!raced || attempt >= CREATE_ATTEMPTS_MAX) throw error;
    }
  }
}

/** `position` counts characters of the text from 1. */
function describeFailure(error: unknown, sql: string): string {
  const { message, position } = error as pg.DatabaseError;
  if (position === undefined) return message;
  return `${message} (line ${sql.slice(0, Number(position) - 1).split('\n').length})`;
}
