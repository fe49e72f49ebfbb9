import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Names of fields that never reach a log, wherever they stand. */
const HIDDEN = ['authorization', 'cookie', 'private_key', 'privateKey', 'secret', 'apiKeys', 'password'];

/**
 * Structured log on standard output, one JSON object a line. Levels: `error` wants a person, `warn` may want one,
 * `info` is a change of state worth keeping, `debug` is for whoever works on the code.
 */
export function createLogger(name: string, level = 'info'): Logger {
  return pino({
    name,
    level,
    base: { name },
    redact: { paths: HIDDEN.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]), censor: '(hidden)' },
  });
}
