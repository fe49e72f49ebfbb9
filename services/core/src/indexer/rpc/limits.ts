import { backoffMs } from '@skerry/kit';
import type { Failure } from './failures.ts';

/** What was learned of an endpoint from its answers. */
export interface Learned {
  /** Blocks of one request for logs. */
  readonly rangeBlocks: number;
  /** Requests at the same time. */
  readonly concurrency: number;
  /** Calls in one HTTP request. */
  readonly batchCalls: number;
  /** Failures since the last success. */
  readonly failures: number;
  /** Not to be asked before this time, ms since 1970. */
  readonly restUntilMs: number;
  /** Successes since `rangeBlocks` or `concurrency` was last lowered. */
  readonly successes: number;
}

export const RPC_LIMITS = {
  rangeBlocks: 100_000,
  concurrencyMax: 16,
  concurrencyStart: 4,
  batchCalls: 100,
  restBaseMs: 250,
  restMaxMs: 30_000,
  /** After so many successes a limit that was lowered is tried a little higher. */
  successesPerRaise: 32,
} as const;

export const INITIAL: Learned = {
  rangeBlocks: RPC_LIMITS.rangeBlocks,
  concurrency: RPC_LIMITS.concurrencyStart,
  batchCalls: RPC_LIMITS.batchCalls,
  failures: 0,
  restUntilMs: 0,
  successes: 0,
};

/** Additive increase; the range doubles back slowly, since each try of a larger one may cost a request. */
export function learnFromSuccess(learned: Learned): Learned {
  const successes = learned.successes + 1;
  if (successes < RPC_LIMITS.successesPerRaise) return { ...learned, failures: 0, successes };
  return {
    ...learned,
    failures: 0,
    successes: 0,
    concurrency: Math.min(RPC_LIMITS.concurrencyMax, learned.concurrency + 1),
  };
}

/** Multiplicative decrease. @param blocks of the request that failed; 0 where it was not one for a range */
export function learnFromFailure(
  learned: Learned,
  failure: Failure,
  {
    blocks,
    nowMs,
    random,
    restAfterLieMs,
  }: { blocks: number; nowMs: number; random: number; restAfterLieMs: number },
): Learned {
  const failures = learned.failures + 1;
  const rest = (ms: number) => Math.max(learned.restUntilMs, nowMs + ms);
  const backoff = backoffMs(failures, RPC_LIMITS.restBaseMs, RPC_LIMITS.restMaxMs, random);
  const fewer = Math.max(1, Math.floor(learned.concurrency / 2));
  switch (failure.kind) {
    case 'range_too_large': {
      if (blocks === 0) return { ...learned, batchCalls: Math.max(1, Math.floor(learned.batchCalls / 2)) };
      const wanted = Math.min(failure.blocks ?? Math.floor(blocks / 2), Math.floor(blocks / 2));
      return { ...learned, successes: 0, rangeBlocks: Math.max(1, Math.min(learned.rangeBlocks, wanted)) };
    }
    case 'rate_limited':
      return {
        ...learned,
        failures,
        successes: 0,
        concurrency: fewer,
        restUntilMs: rest(failure.retryAfterMs ?? backoff),
      };
    case 'timeout':
      return {
        ...learned,
        failures,
        successes: 0,
        concurrency: fewer,
        rangeBlocks:
          blocks > 1
            ? Math.max(1, Math.min(learned.rangeBlocks, Math.floor(blocks / 2)))
            : learned.rangeBlocks,
        restUntilMs: rest(backoff),
      };
    case 'lie':
      return { ...learned, failures, restUntilMs: rest(restAfterLieMs) };
    case 'unsupported':
      return learned;
    default:
      return { ...learned, failures, restUntilMs: rest(backoff) };
  }
}
