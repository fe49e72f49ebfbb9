import { type Logger, runLoop } from '@skerry/kit';
import type { ComputeConfig } from '../../config.ts';
import { eachAlone } from '../../host/each-alone.ts';
import type { ImageStore } from '../../images/store.ts';
import { cutMachineLog } from '../../vm/machine-log.ts';
import { instanceDirectory, listInstanceNames } from '../record/record.ts';
import type { Backups } from './backups.ts';
import { eraseForRoom, type GraceMs, sweepReleased } from './released.ts';

type GraceConfig = Pick<ComputeConfig, 'dataDir' | 'releasedGraceHours' | 'movedGraceHours'>;

export interface SweepDeps {
  readonly backups: Backups;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const SWEEP_EVERY_MS = 10 * 60_000;
/** How often it is looked whether a disk of this machine is full, or a log long. */
const ROOM_EVERY_MS = 15_000;
const HOUR_MS = 3_600_000;

/** Erases disks whose grace is over and backups that expired, until the signal ends. */
export function sweepDisks(config: GraceConfig, { backups, log, signal }: SweepDeps): Promise<void> {
  let sweptMs = performance.now();
  return runLoop({ name: 'sweep', intervalMs: SWEEP_EVERY_MS, signal, log }, async () => {
    const elapsedMs = performance.now() - sweptMs;
    sweptMs += elapsedMs;
    const times = { elapsedMs, nowMs: Date.now() };
    const sweeps = [
      () => sweepReleased(config.dataDir, graceOf(config), times, log),
      () => backups.sweep(elapsedMs),
    ];
    await eachAlone(sweeps, (sweep) => sweep());
  });
}

function graceOf({ releasedGraceHours, movedGraceHours }: GraceConfig): GraceMs {
  const own = releasedGraceHours * HOUR_MS;
  return { forgotten: own, replaced: own, moved: movedGraceHours * HOUR_MS };
}

/** Lets go of what nobody uses, before machines that run have no room, until the signal ends. */
export function keepRoom(
  dataDir: string,
  { images, log, signal }: Pick<SweepDeps, 'log' | 'signal'> & { readonly images: Pick<ImageStore, 'sweep'> },
): Promise<void> {
  return runLoop({ name: 'room', intervalMs: ROOM_EVERY_MS, signal, log }, async () => {
    const cutLogs = async () =>
      eachAlone(await listInstanceNames(dataDir), (name) => cutMachineLog(instanceDirectory(dataDir, name)));
    const steps = [() => images.sweep(Date.now()), () => eraseForRoom(dataDir, log), cutLogs];
    await eachAlone(steps, (step) => step());
  });
}
