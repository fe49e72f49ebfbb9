import { createRequire } from 'node:module';
import { isatty } from 'node:tty';
import { AppError } from '@skerry/protocol/forms';
import type { DestinationStream, Logger, pino } from 'pino';
import { isJournal, withPriority } from './journal.ts';
import { formatLogLine } from './log-line.ts';
import { createLogOutput } from './log-output.ts';

export type { Logger } from 'pino';

const STDOUT = 1;

/** Names of fields that never reach a log, wherever they stand. */
const HIDDEN = ['authorization', 'cookie', 'private_key', 'privateKey', 'secret', 'apiKeys', 'password'];

/** What `SKERRY_LOG_LEVEL` may say: the least that is logged. */
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** What `SKERRY_LOG_FORMAT` may say; without it, standard output decides. */
export const LOG_FORMATS = ['people', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** Standard output, on which each record is a line of its own form. */
function createFormedOutput(format: (record: string) => string): DestinationStream {
  const output = createLogOutput(STDOUT, format);
  return { write: (line) => output.write(`${format(line.trimEnd())}\n`) };
}

/**
 * Where the log of a daemon goes: for people on a terminal, for programs (a service manager, a pipe) anywhere else. To systemd's
 * journal each line says how important it is.
 *
 * @param journal what systemd says of the journal (JOURNAL_STREAM)
 */
export function chooseLogSink(
  name: string,
  format: LogFormat | undefined,
  journal: string | undefined,
): DestinationStream {
  const isTerminal = isatty(STDOUT);
  const isForPeople = (format ?? (isTerminal ? 'people' : 'json')) === 'people';
  const colours = isTerminal && process.stdout.hasColors();
  const form = isForPeople
    ? (record: string) => formatLogLine(name, record, Date.now(), colours)
    : (record: string) => record;
  if (isJournal(STDOUT, journal)) return createFormedOutput((record) => withPriority(record, form(record)));
  return isForPeople ? createFormedOutput(form) : createLogOutput(STDOUT);
}

/** What the log itself says in each record. */
const OWN = ['level', 'time', 'name'];

/** A second field of the same name would stand for the log's own wherever a record is read: it is `name_` and so on. */
function keepOwn(fields: Record<string, unknown>): Record<string, unknown> {
  if (!OWN.some((own) => Object.hasOwn(fields, own))) return fields;
  const entries = Object.entries(fields);
  return Object.fromEntries(entries.map(([key, value]) => [OWN.includes(key) ? `${key}_` : key, value]));
}

/** An error may be among its own causes. */
const CAUSES_MAX = 8;

/** What an error says, then what its causes say beyond that: many name their cause themselves. */
function describeError(error: Error): string {
  let message = error.message;
  let { cause } = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    if (!message.includes(cause.message)) message += `: ${cause.message}`;
    cause = cause.cause;
  }
  return message;
}

/** The code says all there is to know: nothing of ours went wrong. */
const isForeseen = (error: Error) =>
  error instanceof AppError &&
  error.cause === undefined &&
  error.kind !== 'internal' &&
  error.kind !== 'unavailable';

/**
 * Structured log on standard output (or `sink`), one JSON object a line. Levels: `error` wants a person, `warn` may want one,
 * `info` is a change of state worth keeping, `debug` is for whoever works on the code.
 */
export function createLogger(name: string, level = 'info', sink?: DestinationStream): Logger {
  // Loaded with the first log: commands have none.
  const load = createRequire(import.meta.url)('pino') as typeof pino;
  const { err: serialize } = load.stdSerializers;
  const options = {
    name,
    serializers: {
      err: (error: unknown) =>
        error instanceof Error
          ? Object.assign(serialize(error), {
              message: describeError(error),
              ...(isForeseen(error) ? { stack: undefined } : {}),
            })
          : error,
    },
    formatters: { log: keepOwn },
    level,
    base: { name },
    redact: { paths: HIDDEN.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]), censor: '(hidden)' },
  };
  return load(options, sink ?? createLogOutput(STDOUT));
}
