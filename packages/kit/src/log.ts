import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Names of fields that never reach a log, wherever they stand. */
const HIDDEN = ['authorization', 'cookie', 'private_key', 'privateKey', 'secret', 'apiKeys', 'password'];

/**
 * Structured log on standard output (or `sink`), one JSON object a line. Levels: `error` wants a person, `warn` may want one,
 * `info` is a change of state worth keeping, `debug` is for whoever works on the code.
 */
export function createLogger(name: string, level = 'info', sink?: DestinationStream): Logger {
  const options = {
    name,
    level,
    base: { name },
    redact: { paths: HIDDEN.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]), censor: '(hidden)' },
  };
  return sink ? pino(options, sink) : pino(options);
}
