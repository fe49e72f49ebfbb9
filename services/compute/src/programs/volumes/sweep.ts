import type { CoreClient } from '@skerry/client';
import { type Logger, runLoop } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { checkCaughtUp, type SyncCheck } from '../../caught-up.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import type { Volumes } from './volumes.ts';

export interface SweepOptions {
  readonly core: Pick<CoreClient, 'getMessageStatus'>;
  readonly sync: SyncCheck;
  readonly volumes: Pick<Volumes, 'listPrograms' | 'erase'>;
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
export function sweepVolumes({ core, sync, volumes, log, signal }: SweepOptions): Promise<void> {
  const loop = { name: 'volumes of programs', intervalMs: PROGRAM_LIMITS.volumeSweepMs, signal, log };
  return runLoop(loop, async () => {
    const programs = await volumes.listPrograms();
    if (programs.length === 0) return;
    // A FORGET may not count by what it does not have yet, and nothing brings back what is erased.
    await checkCaughtUp(sync);
    for (const program of programs) if (await wasForgotten(core, program)) await volumes.erase(program);
  });
}
