import { backoffMs } from '@skerry/kit';

/** How a daemon's process ended. */
export interface DaemonExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** How long it had served, or undefined where it did not become ready. */
  readonly servedMs: number | undefined;
  /** Whether it became ready in an earlier life or in this one. */
  readonly hasServed: boolean;
  /** Ends in a row before this one in which it did not serve for long. */
  readonly failures: number;
}

export interface RestartLimits {
  readonly baseMs: number;
  readonly maxMs: number;
  /** Serving for longer than this forgets earlier failures. */
  readonly steadyMs: number;
  /** Short lives in a row after which it is left alone. */
  readonly maxFailures: number;
  /** The same for one that never served: more of the same does not help it, and people wait. */
  readonly maxFirstFailures: number;
}

export const RESTART_LIMITS: RestartLimits = {
  baseMs: 200,
  maxMs: 10_000,
  steadyMs: 30_000,
  maxFailures: 10,
  maxFirstFailures: 4,
};

/** What kit's runService answers for a setting that is wrong: another start would end in the same way. */
const WRONG_SETTING_EXIT_CODE = 2;

export type RestartDecision =
  | { readonly restartAfterMs: number; readonly failures: number }
  | { readonly giveUp: string };

export function decideRestart(
  exit: DaemonExit,
  limits: RestartLimits,
  random: number = Math.random(),
): RestartDecision {
  if (exit.code === WRONG_SETTING_EXIT_CODE && exit.servedMs === undefined)
    return { giveUp: 'a setting is wrong' };
  const steady = exit.servedMs !== undefined && exit.servedMs >= limits.steadyMs;
  const failures = steady ? 1 : exit.failures + 1;
  const allowed = exit.hasServed ? limits.maxFailures : limits.maxFirstFailures;
  if (failures > allowed) return { giveUp: `it ended ${failures} times in a row` };
  return { restartAfterMs: backoffMs(failures, limits.baseMs, limits.maxMs, random), failures };
}
