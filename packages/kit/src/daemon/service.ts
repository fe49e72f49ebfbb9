import { AppError } from '@skerry/protocol';
import { type ConfigSpec, readConfig, type Setting, variableName } from './config.ts';
import { createLogger, type Logger } from './log.ts';

/** What a service may use from whoever runs it. */
export interface Host {
  readonly log: Logger;
  /** Ends when the service should stop. */
  readonly signal: AbortSignal;
  /** Asks the host to stop the service as a signal would. */
  readonly stop?: (why: string) => void;
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
  start(config: C, host: Host): Promise<RunningService>;
}

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A stop that takes longer is cut short: what is on disk is complete at every line. */
const STOP_DEADLINE_MS = 15_000;

/** A process that is through ends by itself; one that something still holds open is ended after this. */
const END_DEADLINE_MS = 2_000;

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

/** A port that cannot be had, with the setting that moves it. */
export function namePortSetting<C>(error: unknown, { prefix, settings }: ConfigSpec<C>, config: C): unknown {
  if (!(error instanceof AppError) || error.code !== 'PORT_IN_USE') return error;
  const { port } = error.details as { readonly port?: number };
  const named = Object.entries<Setting<unknown>>(settings)
    .filter(([key, { isPort }]) => isPort && config[key as keyof C] === port)
    .map(([key, { describe }]) => `${variableName(prefix, key)} (${describe})`);
  if (named.length === 0) return error;
  return new AppError('PORT_IN_USE', `${error.message}; choose another with ${named.join(' or ')}`, {
    cause: error,
    details: error.details,
  });
}

async function serve<C>(
  service: Service<C>,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const config = readConfig(service.config, environment);
  const log = createLogger(service.name, environment.SKERRY_LOG_LEVEL ?? 'info');
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) =>
    stop.signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  for (const signal of STOP_SIGNALS)
    process.once(signal, () => stop.abort(new AppError('SHUTTING_DOWN', `received ${signal}`)));
  // A parent that holds this channel open and dies takes the service with it, also after SIGKILL.
  process.once('disconnect', () =>
    stop.abort(new AppError('SHUTTING_DOWN', 'the parent process has exited')),
  );

  let running: RunningService;
  try {
    running = await service.start(config, {
      log,
      signal: stop.signal,
      stop: (why) => stop.abort(new AppError('SHUTTING_DOWN', why)),
    });
  } catch (error) {
    if (stop.signal.aborted) return 0;
    log.error({ err: namePortSetting(error, service.config, config) }, 'the service failed to start');
    return error instanceof AppError && error.kind === 'invalid' ? 2 : 1;
  }
  log.info({ urls: running.urls }, `${service.name} is ready`);
  if (process.send) process.send({ ready: true, urls: running.urls });
  await stopped;
  log.info(`${service.name} is stopping`);
  const deadline = setTimeout(() => {
    log.error(`${service.name} did not stop within ${STOP_DEADLINE_MS} ms`);
    process.exit(1);
  }, STOP_DEADLINE_MS);
  deadline.unref();
  await running[Symbol.asyncDispose]();
  clearTimeout(deadline);
  return 0;
}
