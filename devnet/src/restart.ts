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
  /** Ends in a row after which whoever waits for the first readiness is told why; it is tried again all the same. */
  readonly maxFirstFailures: number;
}

export const RESTART_LIMITS: RestartLimits = {
  baseMs: 200,
  maxMs: 30_000,
  steadyMs: 30_000,
  maxFirstFailures: 4,
};

/** What kit's runService answers for a setting that is wrong: another start would end in the same way. */
const WRONG_SETTING_EXIT_CODE = 2;

export type RestartDecision =
  | {
      readonly restartAfterMs: number;
      readonly failures: number;
      /** Whether people who wait for it should wait no longer. */
      readonly isFailing: boolean;
    }
  | { readonly giveUp: string };

/**
 * A failure may pass (a full disk is emptied, a database comes back), so that a daemon is started again for ever. Only a wrong
 * setting does not pass: settings are those that it was started with.
 */
export function decideRestart(
  exit: DaemonExit,
  limits: RestartLimits,
  random: number = Math.random(),
): RestartDecision {
  if (exit.code === WRONG_SETTING_EXIT_CODE && exit.servedMs === undefined)
    return { giveUp: 'a setting is wrong' };
  const steady = exit.servedMs !== undefined && exit.servedMs >= limits.steadyMs;
  const failures = steady ? 1 : exit.failures + 1;
  return {
    restartAfterMs: backoffMs(failures, limits.baseMs, limits.maxMs, random),
    failures,
    isFailing: !exit.hasServed && failures > limits.maxFirstFailures,
  };
}
