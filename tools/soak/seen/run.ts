import type { Outcome } from './seen.ts';

/** What a soak is, as far as it is run. */
export interface Runnable {
  readonly name: string;
  /** It fails by throwing, or by setting the exit code. Gives whether it left anything out. */
  run(): Promise<{ readonly isInPart: boolean }>;
}

/**
 * Soaks, one after another: one that fails is told, and keeps no other from running. The exit code is 1 if any has failed.
 * @param keep is told after each, since the next one may take hours
 */
export async function runEach(
  soaks: readonly Runnable[],
  keep: (outcome: Outcome) => void,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { name, run } of soaks) {
    process.exitCode = 0;
    const startMs = performance.now();
    let isInPart = false;
    try {
      ({ isInPart } = await run());
    } catch (error) {
      console.error(error);
      process.exitCode = 1;
    }
    const seconds = (performance.now() - startMs) / 1000;
    const passed = isInPart ? 'passed in part' : 'passed';
    const outcome: Outcome = { name, seconds, result: process.exitCode === 0 ? passed : 'failed' };
    outcomes.push(outcome);
    keep(outcome);
  }
  process.exitCode = outcomes.some(({ result }) => result === 'failed') ? 1 : 0;
  return outcomes;
}
