import { type Logger, runLoop } from '@skerry/kit';
import type { ComputeConfig } from '../../config.ts';
import type { Instances } from '../instances.ts';
import type { Backups } from './backups.ts';
import { type GraceMs, sweepReleased } from './released.ts';

type GraceConfig = Pick<ComputeConfig, 'dataDir' | 'releasedGraceHours' | 'movedGraceHours'>;

export interface SweepDeps {
  readonly instances: Instances;
  readonly backups: Backups;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const SWEEP_EVERY_MS = 10 * 60_000;
const HOUR_MS = 3_600_000;

/** Erases disks whose grace is over and backups that expired, until the signal ends. */
export function sweepDisks(
  config: GraceConfig,
  { instances, backups, log, signal }: SweepDeps,
): Promise<void> {
  return runLoop({ name: 'sweep', intervalMs: SWEEP_EVERY_MS, signal, log }, async () => {
    const records = instances.list().map(({ record }) => record);
    await sweepReleased(config.dataDir, graceOf(config), records, Date.now(), log);
    await backups.sweep(false);
  });
}

function graceOf({ releasedGraceHours, movedGraceHours }: GraceConfig): GraceMs {
  const own = releasedGraceHours * HOUR_MS;
  return { forgotten: own, replaced: own, moved: movedGraceHours * HOUR_MS };
}
