import { CpuAccounts } from '../../runner/cpu.ts';
import { runFiles } from '../../runner/file.ts';
import { busyFactor, IDLE_LIMIT_MS } from '../../runner/limits.ts';
import { onSignals } from './signals.ts';

const LIMIT_MS = 7_200_000;

/**
 * A file of long tests, run as `npm test` runs one, but shown as it goes: it fails as well where it has no test, ends before its
 * tests have, does not end after them, or leaves a process behind. Gives whether it left anything out.
 * @throws Error with a line for each thing that failed
 */
export async function runSoakFile(path: string): Promise<{ readonly isInPart: boolean }> {
  const accounts = new CpuAccounts();
  const stop = new AbortController();
  using _signals = onSignals((signal) => stop.abort(`was ended by ${signal}`));
  try {
    const { failed, skipped } = await runFiles({
      paths: [path],
      limitMs: () => LIMIT_MS,
      idleLimitMs: () => IDLE_LIMIT_MS * busyFactor(),
      signal: stop.signal,
      accounts,
      show: (text) => process.stdout.write(text),
    });
    for (const what of skipped) console.log(`NOT RUN HERE: ${what}`);
    if (failed.length > 0) throw new Error(failed.join('\n'));
    return { isInPart: skipped.length > 0 };
  } finally {
    accounts.close();
  }
}
