import { listRuns } from './benches.ts';
import { tell } from './measure/figures.ts';
import { BUSY_MAX, measureBusy, WAIT_MINUTES, waitForQuiet } from './quiet.ts';
import { describeRun, keyOf, type Run, type Runs, writeRun } from './report/record.ts';
import { BenchError, runBench } from './run.ts';

interface Options {
  readonly args: readonly string[];
  readonly output: 1 | 2;
  readonly limitMinutes: number;
  /** Part of all processors that others use, 0 to 1. */
  readonly busy: number;
}

/**
 * Runs a bench and gives what is to be kept of it, and what it could not measure.
 * @throws BenchError
 */
export async function runForRecord(
  name: string,
  { busy, ...options }: Options,
): Promise<{ readonly run: Run; readonly lacking: readonly string[] }> {
  const about = describeRun(busy);
  const startMs = performance.now();
  const { figures, lacking } = await runBench(name, options);
  const seconds = Math.round((performance.now() - startMs) / 1000);
  return { run: { ...about, seconds, figures }, lacking };
}

/** The part of the processors in use once a bench may begin; undefined where it may not. */
async function waitForTurn(goesOnBusy: boolean): Promise<number | undefined> {
  const busy = goesOnBusy ? await measureBusy() : await waitForQuiet();
  if (busy === undefined)
    tell(`not run: others used more than ${BUSY_MAX * 100} % of the processors for ${WAIT_MINUTES} minutes`);
  return busy;
}

interface AllOptions {
  /** Benches; left out: every one. */
  readonly names: readonly string[];
  readonly output: 1 | 2;
  readonly goesOnBusy: boolean;
}

/**
 * Benches in turn, each within its limit and once the machine is quiet. What one has found is kept at once.
 * @returns the runs, and what is kept of none
 */
export async function runAll({ names, output, goesOnBusy }: AllOptions) {
  const runs: Record<string, Run> = {};
  const failed: string[] = [];
  for (const { name, args, minutes, limitMinutes } of listRuns()) {
    if (names.length > 0 && !names.includes(name)) continue;
    const key = keyOf(name, args);
    tell(`\n${key}: about ${minutes} min, at most ${limitMinutes}`);
    const busy = await waitForTurn(goesOnBusy);
    try {
      if (busy === undefined) throw new BenchError(`${key}: the machine was busy`);
      const { run, lacking } = await runForRecord(name, { args, output, limitMinutes, busy });
      runs[key] = run;
      writeRun(key, run, lacking);
    } catch (error) {
      if (!(error instanceof BenchError)) throw error;
      tell(error.message);
      failed.push(key);
    }
  }
  return { runs: runs as Runs, failed };
}
