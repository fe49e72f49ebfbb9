import { availableParallelism, loadavg } from 'node:os';

/** A hung file is ended after this on a machine that has nothing else to do. */
export const QUICK_LIMIT_MS = 240_000;
export const END_TO_END_LIMIT_MS = 900_000;
/** A file none of whose tests is open may take this long for what comes after them. */
export const IDLE_LIMIT_MS = 60_000;
/** The whole run, checks included: on two cores it takes less than 15 minutes. */
export const RUN_LIMIT_MS = 20 * 60_000;

/** Processes that a run keeps ready to work for each core, its services and databases included. */
const OWN_LOAD_PER_CORE = 2;
const BUSY_FACTOR_MAX = 4;

/**
 * By how much longer limits are while others keep the machine busy: a run that gets half of the processor's time may take twice
 * as long. A run that hangs leaves the machine idle and keeps its limits.
 * @param loads processes ready to work in the last minute and the last five
 */
export function busyFactor(
  loads: readonly number[] = loadavg().slice(0, 2),
  cores = availableParallelism(),
): number {
  return Math.min(BUSY_FACTOR_MAX, Math.max(1, Math.max(...loads) / (cores * OWN_LOAD_PER_CORE)));
}
