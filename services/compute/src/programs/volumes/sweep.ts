import type { CoreClient } from '@skerry/client';
import { type Logger, runLoop } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { PROGRAM_LIMITS } from '../limits.ts';
import type { Volumes } from './volumes.ts';

export interface SweepOptions {
  readonly core: Pick<CoreClient, 'getMessageStatus'>;
  readonly volumes: Volumes;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** A core node that does not know a program, or is away, is no reason to erase anything. */
async function wasForgotten(core: SweepOptions['core'], program: string): Promise<boolean> {
  try {
    return (await core.getMessageStatus(program)).status === 'forgotten';
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

/** Erases what belonged to programs that were forgotten, now and then until the signal ends. */
export function sweepVolumes({ core, volumes, log, signal }: SweepOptions): Promise<void> {
  const loop = { name: 'volumes of programs', intervalMs: PROGRAM_LIMITS.volumeSweepMs, signal, log };
  return runLoop(loop, async () => {
    for (const program of await volumes.listPrograms())
      if (await wasForgotten(core, program)) await volumes.erase(program);
  });
}
