export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** PostgreSQL, "Reporting and Logging", message severity levels. LOG is what an operator of the server would read. */
const LEVELS: Readonly<Record<string, LogLevel>> = {
  LOG: 'debug',
  INFO: 'debug',
  NOTICE: 'debug',
  DETAIL: 'debug',
  HINT: 'debug',
  CONTEXT: 'debug',
  STATEMENT: 'debug',
  WARNING: 'warn',
  ERROR: 'debug',
  FATAL: 'debug',
  PANIC: 'error',
};

const LINE = /^([A-Z]+): {1,2}(.*)$/;

/**
 * An ERROR ends a statement and a FATAL a session, and its client reports it; the end of the server is reported with its
 * last lines. A line without severity comes from the loader or a library.
 */
export function parseServerLine(line: string): { level: LogLevel; message: string } {
  const match = LINE.exec(line);
  const level = match === null ? undefined : LEVELS[match[1] ?? ''];
  return level === undefined ? { level: 'debug', message: line } : { level, message: match?.[2] ?? line };
}
