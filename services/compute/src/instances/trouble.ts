import { AppError, type Reason } from '@skerry/protocol';

/** So many failures within the window, and the node gives up until somebody asks again. */
export const TROUBLE_LIMIT = 5;
export const TROUBLE_WINDOW_MS = 10 * 60_000;
export const RETRY_BASE_MS = 1_000;
export const RETRY_MAX_MS = 60_000;
const MESSAGE_CHARS = 1_000;

/** What follows from a failure: try again after a while, or give up. Pure. */
export type Verdict = { readonly retryInMs: number } | { readonly giveUp: Reason };

/**
 * @param times when earlier failures happened, milliseconds since 1970; only those of the window count
 */
export function judgeTrouble(error: unknown, times: readonly number[], nowMs: number): Verdict {
  const reason = reasonOf(error);
  const count = recentOf(times, nowMs).length + 1;
  if (error instanceof AppError && error.kind === 'invalid') return { giveUp: reason };
  if (count >= TROUBLE_LIMIT) {
    const message = `gave up after ${count} failures in ${TROUBLE_WINDOW_MS / 60_000} minutes; the last: ${reason.message}`;
    return { giveUp: { code: reason.code, message: message.slice(0, MESSAGE_CHARS) } };
  }
  return { retryInMs: Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 4 ** (count - 1)) };
}

export function recentOf(times: readonly number[], nowMs: number): number[] {
  return times.filter((time) => nowMs - time < TROUBLE_WINDOW_MS);
}

/** An error in the words of a status. */
export function reasonOf(error: unknown): Reason {
  const code = error instanceof AppError ? error.code : 'INTERNAL';
  const message = error instanceof Error ? error.message : String(error);
  return { code, message: message.slice(0, MESSAGE_CHARS) };
}
