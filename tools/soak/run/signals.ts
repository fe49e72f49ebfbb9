const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Whoever ends a soak is told to end what it started first; once this is disposed of, the signal does what it does to everybody.
 * @param end is called for the first signal
 */
export function onSignals(end: (signal: NodeJS.Signals) => void): Disposable {
  let got: NodeJS.Signals | undefined;
  const hear = (signal: NodeJS.Signals) => {
    if (got !== undefined) return;
    got = signal;
    end(signal);
  };
  for (const signal of SIGNALS) process.on(signal, hear);
  return {
    [Symbol.dispose]: () => {
      for (const signal of SIGNALS) process.off(signal, hear);
      if (got !== undefined) process.kill(process.pid, got);
    },
  };
}
