import type { Logger } from '@skerry/kit';
import type { Reason } from '@skerry/protocol';
import type { AcceleratorChoice } from '../vm/accel.ts';
import { preflight } from './preflight.ts';

const REASON_CHARS = 1_024;

/** Why a machine cannot run virtual machines, as a status says it; null when it can. Pure. */
function obstacleReason(obstacles: readonly string[]): Reason | null {
  if (obstacles.length === 0) return null;
  return { code: 'HOST_NOT_READY', message: obstacles.join('. ').slice(0, REASON_CHARS) };
}

/** Why this machine cannot run virtual machines; said once, with all that is missing. */
export async function findObstacle(
  installPackages: boolean,
  accelerator: AcceleratorChoice,
  log: Logger,
  signal: AbortSignal,
): Promise<Reason | null> {
  const obstacles = await preflight(installPackages, log, signal);
  if (obstacles.length === 0)
    await accelerator.start().catch((error: Error) => obstacles.push(error.message));
  const reason = obstacleReason(obstacles);
  if (reason) log.warn({ obstacles }, `this node runs no virtual machines: ${reason.message}`);
  return reason;
}
