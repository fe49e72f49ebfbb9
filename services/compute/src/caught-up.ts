import type { CoreSync } from '@skerry/client/core-sync';
import { NotYetError } from '@skerry/kit';

export type SyncCheck = Pick<CoreSync, 'check' | 'isInStep'>;

/** For how long a core node that was in step counts as that: it may count what it is asked. */
const IN_STEP_MS = 5_000;

/**
 * A core node that was emptied, or meets its peers again, reads what was decided in the order of time: until it has all of it, an instance
 * is where it was once.
 *
 * @throws NotYetError UPSTREAM_UNAVAILABLE until the core node has what its peers have; AppError where it does not answer
 */
export async function checkCaughtUp(sync: SyncCheck): Promise<void> {
  const why = await sync.check();
  if (why !== null) throw new NotYetError('UPSTREAM_UNAVAILABLE', why);
}

/**
 * The same for what comes often: a core node in step is asked seldom.
 *
 * @param uptime milliseconds of a clock that nobody sets
 */
export function createSeldomCheck(
  sync: SyncCheck,
  uptime: () => number = () => performance.now(),
): () => Promise<void> {
  let askedMs = -Infinity;
  return async () => {
    if (sync.isInStep && uptime() - askedMs < IN_STEP_MS) return;
    const nowMs = uptime();
    await checkCaughtUp(sync);
    askedMs = nowMs;
  };
}
