import { AppError } from '@skerry/protocol';

/** The newest migration that this code knows. */
export const SCHEMA_VERSION = 51;

/** What this code writes may lack what newer code keeps beside it. @returns why it may not write; undefined where it may */
export const outgrownBy = (version: number): AppError | undefined =>
  version <= SCHEMA_VERSION
    ? undefined
    : new AppError(
        'DATABASE_INCOMPATIBLE',
        'a newer release has migrated the database, and what this process writes may lack what that release needs: install it here, too (docs/roles.md)',
      );
