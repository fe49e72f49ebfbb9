import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from './log.ts';

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

/** Runs `body` now and then once in every interval until the signal ends. A failure is logged and the loop goes on. */
export async function runLoop(
  options: LoopOptions,
  body: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { name, intervalMs, signal, log } = options;
  while (!signal.aborted) {
    try {
      await body(signal);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, loop: name }, 'a round of the loop failed; it goes on');
    }
    if (!(await pause(intervalMs, signal))) return;
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
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      return await body();
    } catch (error) {
      if (signal.aborted) return;
      const retryMs = backoffMs(failures, baseMs, maxMs);
      log.warn({ err: error, step: name, retry_ms: retryMs }, 'a step failed; it is tried again');
      await pause(retryMs, signal);
    }
  }
}

/** Milliseconds before attempt `attempt` (from 1): doubling from `baseMs` up to `maxMs`, with up to a quarter of jitter. */
export function backoffMs(
  attempt: number,
  baseMs: number,
  maxMs: number,
  random: number = Math.random(),
): number {
  const whole = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(whole * (1 - random / 4));
}
