/** What a shell answers for a command that Ctrl-C ended at once. */
export const SIGINT_EXIT_CODE = 130;

/** One key press can arrive twice: from the terminal to the whole group, and passed on by the launcher. */
const SAME_PRESS_MS = 500;

/** The first signal asks for a clean stop, a later one ends everything at once. */
export function listenForStop(onSecond: () => void) {
  const stop = new AbortController();
  let firstMs = Number.POSITIVE_INFINITY;
  const onSignal = () => {
    if (performance.now() - firstMs > SAME_PRESS_MS) onSecond();
    firstMs = Math.min(firstMs, performance.now());
    stop.abort();
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, onSignal);
  // The launcher (bin/launch.js) was killed.
  process.once('disconnect', onSignal);
  return {
    signal: stop.signal,
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, onSignal);
      process.off('disconnect', onSignal);
    },
  };
}

export const untilAborted = (signal: AbortSignal) =>
  signal.aborted
    ? Promise.resolve()
    : new Promise<void>((done) => signal.addEventListener('abort', () => done(), { once: true }));
