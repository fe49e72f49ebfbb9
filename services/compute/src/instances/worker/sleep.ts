import { pause } from '@skerry/kit';

/** The longest that a timer of Node can wait. */
export const FOREVER_MS = 2 ** 31 - 1;

/** Waits for a while, or until woken or the signal ends. */
export async function sleep(milliseconds: number, woken: Promise<void>, signal: AbortSignal): Promise<void> {
  const ended = new AbortController();
  await Promise.race([
    woken,
    pause(Math.min(milliseconds, FOREVER_MS), AbortSignal.any([ended.signal, signal])),
  ]);
  ended.abort();
}
