import { AppError } from '@skerry/protocol';
import { isOutdated } from './statements/prepared.ts';

/** SQLSTATE classes that waiting can cure: connection exceptions, insufficient resources, operator intervention. */
const PASSING_CLASSES = ['08', '53', '57'];
/**
 * And single ones: a server that is read-only (a standby that is being promoted), a transaction that stood still for too long or lost against
 * another, a commit that may not last, a deadlock, a lock that was not had in time, the server's own disk.
 */
const PASSING_STATES = ['25006', '25P03', '40001', '40003', '40P01', '55P03', '58030'];
const PASSING_SYSTEM_CODES = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EPIPE',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
];
/** What the pg client says, without a code, when a connection ends or none can be had in time. */
const CONNECTION_SENTENCES =
  /connection terminated|timeout expired|query read timeout|timeout exceeded when trying to connect|client has encountered a connection error|client was closed and is not queryable|cannot use a pool after/i;

/** Whether a failure with this SQLSTATE or system code may pass without anybody changing anything. */
export function isPassingCode(code: string): boolean {
  return (
    PASSING_SYSTEM_CODES.includes(code) ||
    PASSING_STATES.includes(code) ||
    (code.length === 5 && PASSING_CLASSES.includes(code.slice(0, 2)))
  );
}

/** Where PostgreSQL reads and writes tables, their states, and its log: no statement names such a file. */
const STORAGE_SOURCES: readonly unknown[] = ['md.c', 'fd.c', 'slru.c', 'xlog.c', 'copydir.c'];

/**
 * Whether the server may not open or write its own files, as after a fault of its disk, whose file system is read-only then. PostgreSQL says
 * insufficient_privilege of that too, in the system's words and its language, before it ends (errcode_for_file_access).
 */
const isBarredFromFiles = (code: unknown, file: unknown): boolean =>
  code === '42501' && STORAGE_SOURCES.includes(file);

/** SQLSTATE disk_full: of the server's disk, which this node does not see where the server is not its own. */
const DISK_FULL = '53100';

/**
 * The failure of a query as DATABASE_UNAVAILABLE, or STORAGE_FULL where the server's disk is full, where a later try may succeed; undefined
 * where the fault is elsewhere.
 */
export function asDatabaseError(error: unknown): AppError | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof AggregateError)
    return error.errors.map(asDatabaseError).find((one) => one !== undefined);
  const { code, file, routine } = error as { code?: unknown; file?: unknown; routine?: unknown };
  const isAway =
    (typeof code === 'string' && isPassingCode(code)) ||
    isBarredFromFiles(code, file) ||
    isOutdated({ code, routine }) ||
    CONNECTION_SENTENCES.test(error.message);
  if (!isAway) return undefined;
  return code === DISK_FULL ? databaseFull(error) : databaseAway(error);
}

/** Whether a statement was ended because it took longer than one may (SQLSTATE query_canceled): the database is there. */
export const isTooLong = (error: unknown): boolean =>
  error instanceof Error && (error as { code?: unknown }).code === '57014';

/** Whether a statement was not given a lock in time (SQLSTATE lock_not_available). */
export const isLockedOut = (error: unknown): boolean =>
  error instanceof Error && (error as { code?: unknown }).code === '55P03';

export const databaseAway = (cause?: unknown): AppError =>
  new AppError('DATABASE_UNAVAILABLE', 'the database does not answer; try again shortly', { cause });

const databaseFull = (cause: unknown): AppError =>
  new AppError('STORAGE_FULL', 'the disk of the database is full; try again when there is space', { cause });
