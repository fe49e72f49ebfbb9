/** A bucket is refilled in steps, so that a burst meets exactly the number that was promised, not that plus a trickle. */
const STEPS_PER_MINUTE = 10;
export const STEP_MS = 60_000 / STEPS_PER_MINUTE;

/** In tenths of a request: one step gives `perMinute` of them, a request costs ten. Whole numbers, so nothing is lost in rounding. */
export interface Bucket {
  readonly units: number;
  /** When the step under way began. */
  readonly sinceMs: number;
}

export interface Taken {
  readonly isAllowed: boolean;
  readonly bucket: Bucket;
  /** Requests that would still be taken now. */
  readonly remaining: number;
  /** Until the next request is taken, where this one was not; at least one. */
  readonly retryAfterSeconds: number;
  /** Until the bucket is full again. */
  readonly resetSeconds: number;
}

function refill(bucket: Bucket | undefined, perMinute: number, nowMs: number): Bucket {
  const capacity = perMinute * STEPS_PER_MINUTE;
  if (bucket === undefined) return { units: capacity, sinceMs: nowMs };
  const steps = Math.max(0, Math.floor((nowMs - bucket.sinceMs) / STEP_MS));
  const units = bucket.units + steps * perMinute;
  // A full bucket has no step under way: the next begins with the next request.
  return units >= capacity
    ? { units: capacity, sinceMs: nowMs }
    : { units, sinceMs: bucket.sinceMs + steps * STEP_MS };
}

/**
 * Takes one request from a bucket of `perMinute` requests that refills within a minute.
 * @param bucket as it was left; undefined is a full one
 */
export function takeOne(bucket: Bucket | undefined, perMinute: number, nowMs: number): Taken {
  const before = refill(bucket, perMinute, nowMs);
  const isAllowed = before.units >= STEPS_PER_MINUTE;
  const after = isAllowed ? { ...before, units: before.units - STEPS_PER_MINUTE } : before;
  const secondsUntil = (units: number) =>
    Math.max(1, Math.ceil((after.sinceMs + Math.ceil(units / perMinute) * STEP_MS - nowMs) / 1000));
  return {
    isAllowed,
    bucket: after,
    remaining: Math.floor(after.units / STEPS_PER_MINUTE),
    retryAfterSeconds: secondsUntil(STEPS_PER_MINUTE - after.units),
    resetSeconds: secondsUntil(perMinute * STEPS_PER_MINUTE - after.units),
  };
}
