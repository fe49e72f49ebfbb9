import { AppError, type Reason } from '@skerry/protocol';
import { AWAY } from '../../files/away.ts';
import { asStorageFull } from '../../host/disk-full.ts';
import { storableText } from '../../publish/storable.ts';

/** So many failures within the window, and the node gives up until somebody asks again. */
export const FAILURES_MAX = 5;
export const FAILURE_WINDOW_MS = 10 * 60_000;
/** What passes is tried as rarely as after all failures of so long: at its longest rest many fall within. */
const PASSING_WINDOW_MS = 60 * 60_000;
const RETRY_BASE_MS = 1_000;
export const RETRY_MAX_MS = 60_000;
export const PASSING_RETRY_MAX_MS = 15_000;
/** For what may be downloaded as a whole by each try. */
export const DOWNLOAD_RETRY_MAX_MS = 5 * 60_000;
/** What the node lacks now it may have later, whatever is done with the instance: it is tried for as long as it takes, at least so often. */
const PASSING: ReadonlyMap<string, number> = new Map([
  ...['STORAGE_FULL', 'NO_CAPACITY', ...AWAY].map((code) => [code, PASSING_RETRY_MAX_MS] as const),
  // A mirror is away, or a core node gives something else than was asked for.
  ...['IMAGE_UNAVAILABLE', 'FILE_CORRUPT', 'HASH_MISMATCH', 'UNEXPECTED_ANSWER'].map(
    (code) => [code, DOWNLOAD_RETRY_MAX_MS] as const,
  ),
]);
const MESSAGE_CHARS = 1_000;

/** What follows from a failure: try again after a while, or give up. Pure. */
export type RetryDecision = { readonly retryInMs: number } | { readonly giveUp: Reason };

/**
 * @param times when earlier failures happened, milliseconds since 1970 (`recentOf`)
 */
export function decideRetry(error: unknown, times: readonly number[], nowMs: number): RetryDecision {
  const reason = reasonOf(error);
  const waitAfter = (failures: number, maxMs: number) => Math.min(maxMs, RETRY_BASE_MS * 4 ** failures);
  const passingMs = PASSING.get(reason.code);
  if (passingMs !== undefined) return { retryInMs: waitAfter(recentOf(times, nowMs).length, passingMs) };
  if (isOwnersFault(error)) return { giveUp: reason };
  const count = within(FAILURE_WINDOW_MS, times, nowMs).length + 1;
  if (count >= FAILURES_MAX) {
    const message = `stopped after ${count} failures in ${FAILURE_WINDOW_MS / 60_000} minutes; the last one: ${reason.message}`;
    return { giveUp: { code: reason.code, message: storableText(message, MESSAGE_CHARS) } };
  }
  return { retryInMs: waitAfter(count - 1, RETRY_MAX_MS) };
}

/** Whether the instance is asked for in a way that no node can run. */
export const isOwnersFault = (error: unknown): boolean =>
  error instanceof AppError && error.kind === 'invalid' && !PASSING.has(error.code);

const within = (windowMs: number, times: readonly number[], nowMs: number): number[] =>
  times.filter((time) => nowMs - time < windowMs);

/** Failures that are not too old to count for anything. */
export const recentOf = (times: readonly number[], nowMs: number): number[] =>
  within(PASSING_WINDOW_MS, times, nowMs);

/** An error in the words of a status. */
export function reasonOf(thrown: unknown): Reason {
  const error = asStorageFull(thrown);
  const code = error instanceof AppError ? error.code : 'INTERNAL';
  const message = error instanceof Error ? error.message : String(error);
  return { code, message: storableText(message, MESSAGE_CHARS) };
}
