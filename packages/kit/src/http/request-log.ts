import type { FastifyBaseLogger } from 'fastify';
import type { Logger } from '../daemon/log.ts';

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
type Bindings = Parameters<Logger['child']>[0];

/**
 * The log of one request, made when its first line is written: most write none, and what a log binds is looked through for secrets,
 * which took more memory than any other step of a request.
 */
class RequestLog implements Record<Level, (...line: unknown[]) => void> {
  readonly #log: Logger;
  readonly #bindings: Bindings;
  #own: Logger | undefined;

  constructor(log: Logger, bindings: Bindings) {
    this.#log = log;
    this.#bindings = bindings;
  }

  get level() {
    return this.#log.level;
  }

  silent() {}

  trace(...line: unknown[]) {
    this.#write('trace', line);
  }

  debug(...line: unknown[]) {
    this.#write('debug', line);
  }

  info(...line: unknown[]) {
    this.#write('info', line);
  }

  warn(...line: unknown[]) {
    this.#write('warn', line);
  }

  error(...line: unknown[]) {
    this.#write('error', line);
  }

  fatal(...line: unknown[]) {
    this.#write('fatal', line);
  }

  child(...args: Parameters<Logger['child']>) {
    return this.#made().child(...args);
  }

  #made(): Logger {
    this.#own ??= this.#log.child(this.#bindings);
    return this.#own;
  }

  #write(level: Level, line: unknown[]) {
    if (this.#log.isLevelEnabled(level)) (this.#made()[level] as (...line: unknown[]) => void)(...line);
  }
}

/** @param bindings what every line of it has */
export const createRequestLog = (log: Logger, bindings: Bindings): FastifyBaseLogger =>
  new RequestLog(log, bindings);
