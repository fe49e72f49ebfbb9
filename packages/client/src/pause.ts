/** Waits, or returns at once where the signal ends, or has ended. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}

/** Whether whoever asks gave it so much time and no more, as `AbortSignal.timeout` ends it: that is no wish to hear nothing. */
export const isTimeLimit = (signal: AbortSignal | undefined) =>
  signal?.aborted === true && (signal.reason as Partial<Error> | null)?.name === 'TimeoutError';

/**
 * Waits after a refusal, to ask again. Throws the refusal where the time given to it all is over meanwhile: that has a code, and says what to
 * do; the signal's reason where it ended otherwise.
 */
export async function pauseAfter(
  refusal: unknown,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  await pause(ms, signal);
  if (isTimeLimit(signal)) throw refusal;
  signal?.throwIfAborted();
}
