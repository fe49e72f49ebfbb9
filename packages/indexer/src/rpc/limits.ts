import { backoffMs } from '@skerry/kit';
import type { RpcFailure } from './failures.ts';

/** What was learned of an endpoint from its answers. */
export interface Learned {
  /** Blocks of one request for logs. */
  readonly rangeBlocks: number;
  /** Requests at the same time. */
  readonly concurrency: number;
  /** What the endpoint itself said is the most; `rangeBlocks` is never raised above it. */
  readonly rangeBlocksTold: number;
  /** Calls in one HTTP request. */
  readonly batchCalls: number;
  /** Failures since the last success. */
  readonly failures: number;
  /** Share of requests that fail, smoothed. */
  readonly failing: number;
  /** Not to be asked before this time, by `performance.now()`: no clock that is set makes a rest longer or shorter. */
  readonly restUntilMs: number;
  /** Successes since a limit was last lowered or raised. */
  readonly successes: number;
}

export const RPC_LIMITS = {
  rangeBlocks: 100_000,
  concurrencyMax: 16,
  concurrencyStart: 4,
  batchCalls: 100,
  restBaseMs: 250,
  restMaxMs: 30_000,
  /** After so many successes limits are tried higher: one request in so many may be wasted on what is still too much. */
  successesPerRaise: 32,
  /** Requests over which the share of failures is smoothed. */
  failingOver: 16,
} as const;

export const INITIAL: Learned = {
  rangeBlocks: RPC_LIMITS.rangeBlocks,
  concurrency: RPC_LIMITS.concurrencyStart,
  rangeBlocksTold: RPC_LIMITS.rangeBlocks,
  batchCalls: RPC_LIMITS.batchCalls,
  failures: 0,
  failing: 0,
  restUntilMs: 0,
  successes: 0,
};

/** A piece of work was done. Requests at the same time grow by one; ranges and batches, which were halved, double. */
export function learnFromSuccess(learned: Learned): Learned {
  const successes = learned.successes + 1;
  if (successes < RPC_LIMITS.successesPerRaise) return { ...learned, failures: 0, successes };
  return {
    ...learned,
    failures: 0,
    successes: 0,
    concurrency: Math.min(RPC_LIMITS.concurrencyMax, learned.concurrency + 1),
    rangeBlocks: Math.min(learned.rangeBlocksTold, learned.rangeBlocks * 2),
    batchCalls: Math.min(RPC_LIMITS.batchCalls, learned.batchCalls * 2),
  };
}

/** One request was answered: what follows is not a failure in a row, also where the work it is for fails later. */
export const learnFromAnswer = (learned: Learned): Learned => ({
  ...learned,
  failures: 0,
  failing: learned.failing - learned.failing / RPC_LIMITS.failingOver,
});

/** One request did not get through; whether that ends the work that it is for shows later. */
export const learnFromMiss = (learned: Learned, { kind }: RpcFailure): Learned => ({
  ...learned,
  failing: learned.failing + (1 - learned.failing) / RPC_LIMITS.failingOver,
  ...(kind === 'rate_limited' ? { successes: 0, concurrency: fewerThan(learned.concurrency) } : {}),
});

const fewerThan = (concurrency: number): number => Math.max(1, Math.floor(concurrency / 2));

/** Multiplicative decrease. @param blocks of the request that failed; 0 where it was not one for a range */
export function learnFromFailure(
  learned: Learned,
  failure: RpcFailure,
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
  const fewer = fewerThan(learned.concurrency);
  switch (failure.kind) {
    case 'range_too_large': {
      // Nothing smaller could be asked for.
      if (failure.isSent && blocks <= 1) return { ...learned, failures, restUntilMs: rest(restAfterLieMs) };
      if (blocks === 0) return lowerBatch(learned, learned.batchCalls / 2);
      const told = failure.blocks !== undefined && failure.blocks < blocks ? failure.blocks : undefined;
      const rangeBlocks = Math.max(1, Math.min(learned.rangeBlocks, told ?? Math.floor(blocks / 2)));
      const rangeBlocksTold = told === undefined || failure.isHere ? learned.rangeBlocksTold : rangeBlocks;
      return { ...learned, successes: 0, rangeBlocks, rangeBlocksTold };
    }
    case 'rate_limited':
      return {
        ...learned,
        failures,
        successes: 0,
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

/** Not every endpoint takes batches, or large ones. */
export const lowerBatch = (learned: Learned, calls: number): Learned => ({
  ...learned,
  successes: 0,
  batchCalls: Math.max(1, Math.floor(calls)),
});
