import type { Claimed } from './deliveries.ts';

/** Attempts that are under way, of endpoints that answer quickly. */
export const QUICK_MAX = 256;
/** Attempts of endpoints that fail or take long: they have room of their own, and never that of the quick ones. */
export const SLOW_MAX = 256;
/** An attempt that takes longer is slow, and its endpoint gets no further one until it has ended. */
const SLOW_AFTER_MS = 1_000;
/**
 * While no quick room is left, an attempt of an endpoint that never answered is slow after this: a thousand dead ones
 * whose events come at once hold up nobody, and one that lives costs itself no more than one attempt at a time.
 */
const UNPROVEN_SLOW_AFTER_MS = 100;
/** Attempts under way of all kinds: at so many none turns slow any more, which would make room for another. */
export const FLIGHTS_MAX = 4_096;
/** Attempts at once to an endpoint of which no success is known yet: many dead ones together take little room. */
const UNPROVEN_MAX = 2;
/** Deliveries that are claimed ahead for one endpoint: so many for each that it takes at once, and of all. */
const AHEAD_FACTOR = 4;
const AHEAD_MAX = 64;

/** One endpoint, as the dispatcher sees it. */
export interface Lane {
  readonly webhook: number;
  /** Claimed, in order. */
  readonly queue: Claimed[];
  /** Whether the table may have more that is due. */
  isReady: boolean;
  /** The table is being asked. */
  isClaiming: boolean;
  inFlight: number;
  /** How many of them are slow by now. */
  stuck: number;
  /** Failures in a row. */
  failures: number;
  /** Whether its last attempt was a success. */
  isProven: boolean;
  /** By this machine's uptime: the clock may be set back. */
  holdUntilMs: number;
  /** When the next retry is due, as far as this process knows. */
  nextDueMs: number;
}

export const createLane = (webhook: number): Lane => ({
  webhook,
  queue: [],
  isReady: false,
  isClaiming: false,
  inFlight: 0,
  stuck: 0,
  failures: 0,
  isProven: false,
  holdUntilMs: 0,
  nextDueMs: Number.POSITIVE_INFINITY,
});

export const isSlow = ({ failures, stuck }: Pick<Lane, 'failures' | 'stuck'>) => failures > 0 || stuck > 0;

/** How long an attempt counts as quick. @param isPressed no quick room is left */
export const slowAfterMs = ({ isProven }: Pick<Lane, 'isProven'>, isPressed: boolean): number =>
  isPressed && !isProven ? UNPROVEN_SLOW_AFTER_MS : SLOW_AFTER_MS;

/** Whether its own limits let the next attempt of an endpoint begin. One that fails or is slow gets one at a time. */
export function isOpen(lane: Lane, concurrency: number, uptimeMs: number): boolean {
  const max = isSlow(lane) ? 1 : lane.isProven ? concurrency : Math.min(UNPROVEN_MAX, concurrency);
  return uptimeMs >= lane.holdUntilMs && lane.inFlight < max;
}

const aheadOf = (concurrency: number) => Math.min(AHEAD_MAX, concurrency * AHEAD_FACTOR);

/** How many to claim for an endpoint now: enough to stay busy, few where it may come to nothing. */
export function claimLimit(lane: Lane, concurrency: number, uptimeMs: number): number {
  if (!lane.isReady || !isOpen(lane, concurrency, uptimeMs)) return 0;
  if (isSlow(lane)) return lane.queue.length === 0 ? 1 : 0;
  const ahead = aheadOf(concurrency);
  return lane.queue.length * 2 >= ahead ? 0 : ahead - lane.queue.length;
}

/** How many new deliveries an endpoint takes ahead of the table: none while older ones wait there. */
export const roomOf = (lane: Lane, concurrency: number, uptimeMs: number): number =>
  lane.isReady || lane.isClaiming || isSlow(lane) || uptimeMs < lane.holdUntilMs
    ? 0
    : aheadOf(concurrency) - lane.queue.length;

/** Nothing is known of it that the table does not know. */
export const isIdle = (lane: Lane) =>
  !lane.isReady &&
  !lane.isClaiming &&
  lane.inFlight === 0 &&
  lane.queue.length === 0 &&
  lane.failures === 0 &&
  lane.nextDueMs === Number.POSITIVE_INFINITY;
