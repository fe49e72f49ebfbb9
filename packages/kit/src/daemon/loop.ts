import { setTimeout as delay } from 'node:timers/promises';
import { Failures } from './failures.ts';
import type { Logger } from './log.ts';

/** However often a loop failed, it is tried again after this or its own interval. */
const FAILED_REST_MAX_MS = 30_000;

export interface LoopOptions {
  readonly name: string;
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Waits, or returns false at once when the signal ends. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(milliseconds, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs `body` now and then once in every interval until the signal ends. Failures do not end the loop: while there are
 * any it rests longer and longer, and says so once for each kind.
 *
 * @param body returns true where there is more to do at once
 */
export async function runLoop(
  options: LoopOptions,
  body: (signal: AbortSignal) => Promise<void> | Promise<boolean>,
): Promise<void> {
  const { name, intervalMs, signal, log } = options;
  const failures = new Failures({
    log,
    what: 'a loop iteration failed; the loop continues',
    fields: { loop: name },
    maxMs: FAILED_REST_MAX_MS,
  });
  while (!signal.aborted) {
    let waitMs = intervalMs;
    try {
      if ((await body(signal)) === true) waitMs = 0;
      failures.clear();
    } catch (error) {
      if (signal.aborted) return;
      waitMs = Math.max(intervalMs, failures.note(error));
    }
    if (waitMs > 0 && !(await pause(waitMs, signal))) return;
  }
}

export interface PersistOptions {
  readonly name: string;
  /** Between tries: doubling from the one to the other. */
  readonly baseMs: number;
  readonly maxMs: number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Does `body` until it succeeds: after a failure again, later each time, for as long as the signal allows. */
export async function persist(options: PersistOptions, body: () => Promise<void>): Promise<void> {
  const { name, baseMs, maxMs, signal, log } = options;
  const failures = new Failures({
    log,
    what: 'a step failed and will be retried',
    fields: { step: name },
    baseMs,
    maxMs,
  });
  while (!signal.aborted) {
    try {
      await body();
      failures.clear();
      return;
    } catch (error) {
      if (signal.aborted) return;
      await pause(failures.note(error), signal);
    }
  }
}
