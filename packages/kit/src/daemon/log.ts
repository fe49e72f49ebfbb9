import { type DestinationStream, type Logger, pino } from 'pino';
import { createLogOutput } from './log-output.ts';

export type { Logger } from 'pino';

const STDOUT = 1;

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
  return pino(options, sink ?? createLogOutput(STDOUT));
}
