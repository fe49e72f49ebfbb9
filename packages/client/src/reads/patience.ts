import { AppError, fieldsOf } from '@skerry/protocol/forms';
import { pauseAfter } from '../pause.ts';

/** For all that is asked together: a core node lets a client ask a hundred times a minute by default. */
export const WAITS_MAX = 60;
const WAIT_MAX_SECONDS = 60;

/** Asks, and asks again as long as the service says that it was asked too often. */
export type Patiently = <T>(ask: () => Promise<T>) => Promise<T>;

export interface PatienceOptions {
  readonly signal?: AbortSignal | undefined;
  /** Told how long is waited, in seconds. */
  readonly onWait?: ((seconds: number) => void) | undefined;
}

/** How long a refusal asks to wait, in seconds; undefined for other failures. */
function waitOf(error: unknown): number | undefined {
  if (!(error instanceof AppError) || error.code !== 'RATE_LIMITED') return undefined;
  const { retry_after: said } = fieldsOf(error.details ?? {});
  return typeof said === 'number' && said >= 0 ? Math.min(said, WAIT_MAX_SECONDS) : WAIT_MAX_SECONDS;
}

/**
 * Waits `WAITS_MAX` times in all, a minute each at most; after that a refusal is thrown. Throws what `ask` throws, also
 * where a time limit ends a wait, and the reason of a signal that ends otherwise.
 */
export function createPatience({ signal, onWait }: PatienceOptions): Patiently {
  let left = WAITS_MAX;
  return async (ask) => {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const seconds = waitOf(error);
        if (seconds === undefined || left === 0) throw error;
        left--;
        onWait?.(seconds);
        await pauseAfter(error, seconds * 1_000, signal);
      }
    }
  };
}
