import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Schema } from './schema.ts';

/**
 * What a verdict hangs on (table `dependencies`): when what a key names changes, the messages that hang on it are decided again.
 */
const FILE = 'file:';
const MESSAGE = 'message:';
const SECURITY = 'security:';
const CREDIT = 'credit:';

export const fileKey = (hash: string) => `${FILE}${hash}`;
export const messageKey = (itemHash: string) => `${MESSAGE}${itemHash}`;
/** What an owner permits others. */
export const securityKey = (owner: string) => `${SECURITY}${owner}`;
/** What hangs on it has a verdict that is a matter of credit. */
export const creditKey = (owner: string) => `${CREDIT}${owner}`;

export const isFileKey = (key: string) => key.startsWith(FILE);
/** The file's name. */
export const fileOf = (key: string) => key.slice(FILE.length);

/** The same in SQL. @param column as `w.hash` */
export const fileKeyOf = (column: string) => sql<string>`${sql.lit(FILE)} || ${sql.ref(column)}`;
export const messageKeyOf = (column: string) => sql<string>`${sql.lit(MESSAGE)} || ${sql.ref(column)}`;
export const creditKeyOf = (column: string) => sql<string>`${sql.lit(CREDIT)} || ${sql.ref(column)}`;

/** All keys that begin so, by the order of bytes that the column has: as a range of its index. */
const beginsWith = (column: string, prefix: string): RawBuilder<boolean> =>
  sql`${sql.ref(column)} >= ${sql.lit(prefix)} and ${sql.ref(column)} < ${sql.lit(prefix.replace(':', ';'))}`;

/** What `fileOf` is. @param column as `d.key` */
export const fileOfIn = (column: string) =>
  sql<string>`substr(${sql.ref(column)}, ${sql.lit(FILE.length + 1)})`;

export const isFileKeyIn = (column: string) => beginsWith(column, FILE);
export const isCreditKeyIn = (column: string) => beginsWith(column, CREDIT);

/** Writes what changes. */
export type Change = (trx: Transaction<Schema>) => Promise<unknown>;

/** Port: who decides again what hangs on keys. */
export interface Touch {
  /** @param change in the same transaction: nobody would decide again what a crash leaves between the two */
  touch(keys: readonly string[], change?: Change): Promise<void>;
}
