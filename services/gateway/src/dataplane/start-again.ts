import { backoffMs, pause } from '@skerry/kit';

const RESTART_MS = { base: 100, max: 10_000 };

/** Starts a program that fell, after a pause, and again after a longer one where it does not start, until the signal ends. */
export async function startAgain(
  start: () => Promise<unknown>,
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
): Promise<void> {
  for (let attempt = 1; await pause(backoffMs(attempt, RESTART_MS.base, RESTART_MS.max), signal); attempt++)
    try {
      await start();
      return;
    } catch (error) {
      if (!signal.aborted) onFailure(error);
    }
}
