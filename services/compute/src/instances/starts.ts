import { FairSlots } from '@skerry/kit';

/** Two, where the machine has one core: else who starts machines all the time would be alone with the only place. */
const LEAST = 2;
/** As many as a node has instances: nobody is refused. */
const WAITING = 100_000;
const WAIT_MS = 24 * 3_600_000;

/** Machines that boot at once. Those of one owner wait for each other before they keep another's waiting. */
export function createStarts(cores: number): FairSlots {
  const total = Math.max(LEAST, cores);
  return new FairSlots({
    running: { total, reserve: 0, perClient: total },
    waiting: { total: WAITING, reserve: 0, perClient: WAITING },
    waitMs: WAIT_MS,
    what: 'machines that start',
    retryAfter: 60,
  });
}
