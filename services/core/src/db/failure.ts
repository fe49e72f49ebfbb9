import { AppError } from '@skerry/protocol';

/** SQLSTATE classes that say the server is away or overwhelmed: connection, resources, operator intervention. */
const UNAVAILABLE_CLASSES = ['08', '53', '57'];
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
]);
/** What node-postgres says, without a code, when a connection ends or none can be had in time. */
const CONNECTION_SENTENCES =
  /connection terminated|timeout exceeded when trying to connect|client has encountered a connection error|cannot use a pool after/i;

/** The failure as DATABASE_UNAVAILABLE where a later try may succeed; undefined where the fault is elsewhere. */
export function asDatabaseError(error: unknown): AppError | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = (error as { code?: unknown }).code;
  const isAway =
    (typeof code === 'string' &&
      (NETWORK_CODES.has(code) || (code.length === 5 && UNAVAILABLE_CLASSES.includes(code.slice(0, 2))))) ||
    CONNECTION_SENTENCES.test(error.message);
  return isAway
    ? new AppError('DATABASE_UNAVAILABLE', 'the database does not answer; try again shortly', {
        cause: error,
      })
    : undefined;
}
