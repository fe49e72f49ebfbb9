import { flushCompileCache } from 'node:module';
import { AppError } from '@skerry/protocol/forms';
import type { Keeping } from '../backup/keeping.ts';
import { type ConfigSpec, readConfig, type Setting, variableName } from './config.ts';
import { chooseLogSink, createLogger, LOG_FORMATS, LOG_LEVELS, type Logger } from './log.ts';
import { keepOwnKey } from './own-key.ts';
import { enterDataDir } from './presence.ts';
import { ServiceManager } from './service-manager.ts';

/** What a service may use from whoever runs it. */
export interface Host {
  readonly log: Logger;
  /** Ends when the service should stop. */
  readonly signal: AbortSignal;
  /** Another process has taken this one's place: stops the service as a signal would. */
  readonly replaced?: (why: string) => void;
  /** The service cannot go on: stops it as a signal would, and its process ends as one does that could not start. */
  readonly failed?: (why: Error) => void;
  /** Says what the start is busy with. While that lasts, whoever waits for the start goes on waiting. */
  readonly longStep?: (what: string) => Disposable;
}

export interface RunningService extends AsyncDisposable {
  /** Where it listens, for people. */
  readonly urls: readonly string[];
}

/** A daemon: what it is called, how it is set up, how it starts. Starting resolves when it serves. */
export interface Service<C> {
  readonly name: string;
  readonly summary: string;
  readonly config: ConfigSpec<C>;
  /** What of its data directory must not be lost. */
  readonly keeping: Keeping<C>;
  /** Whether several processes of it may work in one data directory. Without it a second one does not start: it would clear away what the first one works with. */
  readonly sharesDataDir?: boolean;
  start(config: C, host: Host): Promise<RunningService>;
}

/** What a parent says to a service that serves on without it. */
export const LET_GO = 'let go';

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A stop that takes longer is cut short: what is on disk is complete at every line. */
const STOP_DEADLINE_MS = 15_000;

/** A process that is through ends by itself; one that something still holds open is ended after this. */
const END_DEADLINE_MS = 2_000;

/** The service manager takes the end of its main process for the end of the service, so one that is replaced stays so long for its successor. */
const REPLACED_MS = 180_000;

/**
 * Runs a service until a signal arrives; resolves with the process's exit code, also where it could not start. The process then
 * ends, whatever is still open.
 */
export async function runService<C>(
  service: Service<C>,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const exitCode = await serve(service, environment);
  // The parent's channel would keep a process alive that has nothing left to do.
  process.channel?.unref();
  setTimeout(() => process.exit(exitCode), END_DEADLINE_MS).unref();
  return exitCode;
}

/** A port or a host that cannot be had, with the setting that moves it. */
export function nameListenSetting<C>(
  error: unknown,
  { prefix, settings }: ConfigSpec<C>,
  config: C,
): unknown {
  if (!(error instanceof AppError)) return error;
  const { port, host } = (error.details ?? {}) as { readonly port?: number; readonly host?: string };
  const named = Object.entries<Setting<unknown>>(settings)
    .filter(([key, { isPort, isHost }]) => {
      const value = config[key as keyof C];
      return (
        (isPort && port !== undefined && value === port) || (isHost && host !== undefined && value === host)
      );
    })
    .map(([key, { describe }]) => `${variableName(prefix, key)} (${describe})`);
  if (named.length === 0) return error;
  return new AppError(error.code, `${error.message}; choose another with ${named.join(' or ')}`, {
    cause: error,
    details: error.details,
  });
}

/** Whether it fails until somebody changes something, settings or releases: then nothing starts the service again by itself. */
const isForOperator = (error: unknown) =>
  error instanceof AppError && (error.kind === 'invalid' || error.code === 'DATABASE_INCOMPATIBLE');

const exitCodeOf = (error: unknown) => (isForOperator(error) ? 2 : 1);

/** Throws INVALID_CONFIG. */
function readWord<T extends string>(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
  words: readonly T[],
): T | undefined {
  const text = environment[name];
  const word = words.find((one) => one === text);
  if (text && word === undefined)
    throw new AppError(
      'INVALID_CONFIG',
      `${name} must be one of ${words.join(', ')}, not ${JSON.stringify(text)}`,
    );
  return word;
}

/** Takes the place that the service works in, until the process ends. */
async function enter<C>(
  { keeping, sharesDataDir = false }: Pick<Service<C>, 'keeping' | 'sharesDataDir'>,
  config: C,
): Promise<void> {
  const { dataDir } = config as { readonly dataDir?: string };
  if (dataDir === undefined) return;
  await enterDataDir(dataDir, { isShared: sharesDataDir });
  await keepOwnKey(keeping, dataDir);
}

/** Rejects with INVALID_CONFIG. */
async function readSettings<C>(
  { name, config: spec }: Service<C>,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly config: C; readonly log: Logger }> {
  const config = readConfig(spec, environment);
  const format = readWord(environment, 'SKERRY_LOG_FORMAT', LOG_FORMATS);
  const level = readWord(environment, 'SKERRY_LOG_LEVEL', LOG_LEVELS);
  const sink = chooseLogSink(name, format, environment.JOURNAL_STREAM);
  return { config, log: createLogger(name, level, sink) };
}

const failedStart = (error: unknown) => `failed to start: ${error instanceof Error ? error.message : error}`;

async function serve<C>(
  service: Service<C>,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  using manager = await ServiceManager.find(environment);
  const { config, log } = await readSettings(service, environment).catch(async (error: unknown) => {
    await manager?.status(failedStart(error));
    throw error;
  });
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) =>
    stop.signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  for (const signal of STOP_SIGNALS)
    process.once(signal, () => stop.abort(new AppError('SHUTTING_DOWN', `received ${signal}`)));
  followParent(() => stop.abort(new AppError('SHUTTING_DOWN', 'the parent process has exited')));
  let isReplaced = false;
  let failure: Error | undefined;

  let running: RunningService;
  try {
    await enter(service, config);
    running = await service.start(config, {
      log,
      signal: stop.signal,
      replaced: (why) => {
        isReplaced = true;
        stop.abort(new AppError('SHUTTING_DOWN', why));
      },
      failed: (why) => {
        if (failure) return;
        failure = why;
        log.error({ err: why }, `${service.name} cannot go on`);
        stop.abort(new AppError('SHUTTING_DOWN', why.message));
      },
      longStep: (what) => manager?.longStep(what) ?? { [Symbol.dispose]: () => {} },
    });
  } catch (error) {
    if (failure) return exitCodeOf(failure);
    if (stop.signal.aborted) return 0;
    const named = nameListenSetting(error, service.config, config);
    log.error({ err: named }, 'the service failed to start');
    await manager?.status(failedStart(named));
    return exitCodeOf(error);
  }
  log.info({ urls: running.urls }, `${service.name} is ready`);
  // A parent that ends at this word may be what the manager waits for.
  await manager?.ready(running.urls.join(' '));
  if (process.send) process.send({ ready: true, urls: running.urls, pid: process.pid });
  // Node writes at the end of a process, which one that is killed never comes to: its successor would compile everything again.
  flushCompileCache();
  await stopped;
  log.info(`${service.name} is stopping`);
  // It is the process that stops, not the service: the manager would end the successor, too.
  if (!isReplaced) void manager?.stopping('stopping');
  await dispose(running, service.name, log);
  if (isReplaced && manager) await remain();
  return failure ? exitCodeOf(failure) : 0;
}

/** A parent that holds the channel open and dies takes the service with it, also after SIGKILL, unless it said LET_GO before. */
function followParent(onGone: () => void): void {
  if (!process.connected) return;
  process.once('disconnect', onGone);
  process.on('message', (word) => {
    if (word === LET_GO) process.off('disconnect', onGone);
  });
}

async function dispose(running: RunningService, name: string, log: Logger): Promise<void> {
  const deadline = setTimeout(() => {
    log.error(`${name} did not stop within ${STOP_DEADLINE_MS} ms`);
    process.exit(1);
  }, STOP_DEADLINE_MS);
  deadline.unref();
  await running[Symbol.asyncDispose]();
  clearTimeout(deadline);
}

/** Until the successor has told the service manager that it is the main process now, or a signal comes. */
async function remain(): Promise<void> {
  await new Promise<void>((resolve) => {
    setTimeout(resolve, REPLACED_MS);
    for (const signal of STOP_SIGNALS) process.once(signal, () => resolve());
  });
}
