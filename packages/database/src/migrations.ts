import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@skerry/protocol';

const FILE_NAME = /^(\d{3})-[a-z0-9]+(-[a-z0-9]+)*\.sql$/;

export interface Migration {
  readonly version: number;
  /** The file's name, for example 001-messages.sql. */
  readonly name: string;
  /** SHA-256 of the file, lower-case hex. */
  readonly checksum: string;
  readonly sql: string;
}

/** A row of schema_migrations. */
export type AppliedMigration = Pick<Migration, 'version' | 'name' | 'checksum'>;

/** Reads NNN-name.sql, numbered from 001 without gaps. Throws MIGRATION_FAILED for any other .sql file or numbering. */
export async function readMigrations(directory: string): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  checkNames(names);
  return Promise.all(
    names.map(async (name, index) => {
      const bytes = await readFile(join(directory, name));
      const checksum = createHash('sha256').update(bytes).digest('hex');
      return { version: index + 1, name, checksum, sql: bytes.toString('utf8') };
    }),
  );
}

/** @param names sorted */
function checkNames(names: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    const expected = String(index + 1).padStart(3, '0');
    if (FILE_NAME.exec(name)?.[1] === expected) continue;
    throw new AppError(
      'MIGRATION_FAILED',
      `The migration file ${name} should be named ${expected}-some-words.sql.`,
    );
  }
}

/**
 * What is left to apply, in order.
 * Throws DATABASE_INCOMPATIBLE unless the applied ones are the first of these files, unchanged.
 *
 * @param migrations in order of version, from 1
 * @param applied in order of version
 */
export function decideMigrations(
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
): Migration[] {
  for (const [index, row] of applied.entries()) {
    const migration = migrations[row.version - 1];
    if (migration === undefined) throw newer(row, migrations.length);
    if (row.version !== index + 1)
      throw incompatible(`migration ${index + 1} was left out before ${row.name} was applied`);
    if (row.checksum === migration.checksum) continue;
    throw incompatible(
      `${row.name} was applied and ${migration.name} has changed since. Put the file back as it was and make the change in a new migration`,
    );
  }
  return migrations.slice(applied.length);
}

function newer(row: AppliedMigration, known: number): AppError {
  return incompatible(`it has ${row.name}, this release knows ${known} migrations. Run a newer release`);
}

function incompatible(reason: string): AppError {
  return new AppError('DATABASE_INCOMPATIBLE', `The database does not fit this release: ${reason}.`);
}
