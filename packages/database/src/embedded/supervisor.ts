import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs, type Logger } from '@skerry/kit';
import type { Server } from './server.ts';

/**
 * A first start fails for a moment where the processes of a killed server are not gone yet; what still fails after
 * this many attempts fails for a reason that the operator has to see.
 */
const FIRST_START_ATTEMPTS_MAX = 4;

/** A server that ran before is started again for ever: a full disk can be emptied, and then the node goes on. */
const RESTART_DELAY_MS = { first: 100, max: 30_000 };

/** A server that ran this long counts as healthy, and the next failure as a first one. */
const HEALTHY_AFTER_MS = 60_000;

export interface Supervisor {
  /** Of the current run, or of the last one while the server is down. */
  readonly pid: number;
  stop(): Promise<void>;
}

/** @param failures how many starts or runs in a row have failed, from 1 */
const restartDelayMs = (failures: number) =>
  backoffMs(failures, RESTART_DELAY_MS.first, RESTART_DELAY_MS.max);

/** Keeps one server running until it is stopped. `signal` ends the first start only. */
export async function superviseServer(
  start: (signal?: AbortSignal) => Promise<Server>,
  { log, signal }: { log: Logger; signal?: AbortSignal | undefined },
): Promise<Supervisor> {
  const stopping = new AbortController();
  const state = { server: await startFirst(start, log, signal) };
  const done = keepRunning(state, start, log, stopping.signal);
  return {
    get pid() {
      return state.server.pid;
    },
    async stop() {
      stopping.abort();
      await state.server.stop();
      await done;
    },
  };
}

async function startFirst(
  start: (signal?: AbortSignal) => Promise<Server>,
  log: Logger,
  signal?: AbortSignal,
): Promise<Server> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(signal);
    } catch (error) {
      if (signal?.aborted || attempt >= FIRST_START_ATTEMPTS_MAX) throw error;
      log.warn({ err: error, attempt }, 'the embedded database did not start; retrying');
      await delay(restartDelayMs(attempt), undefined, signal === undefined ? {} : { signal });
    }
  }
}

async function keepRunning(
  state: { server: Server },
  start: (signal?: AbortSignal) => Promise<Server>,
  log: Logger,
  stopping: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!stopping.aborted) {
    const startedAtMs = performance.now();
    const reason = await state.server.ended;
    if (stopping.aborted) return;
    failures = performance.now() - startedAtMs >= HEALTHY_AFTER_MS ? 1 : failures + 1;
    log.error({ reason }, 'the embedded database exited; restarting it');
    while (!stopping.aborted) {
      try {
        await delay(restartDelayMs(failures), undefined, { signal: stopping, ref: false });
        state.server = await start(stopping);
        log.info({ pid: state.server.pid }, 'the embedded database runs again');
        break;
      } catch (error) {
        if (stopping.aborted) return;
        failures += 1;
        log.error({ err: error, failures }, 'the embedded database did not start; retrying');
      }
    }
  }
  // A stop can fall between the start and this line; the caller stopped the server that went before.
  await state.server.stop();
}
