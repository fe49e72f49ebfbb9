import { join } from 'node:path';
import type { CoreClient } from '@skerry/client';
import { type Logger, runLoop } from '@skerry/kit';
import { checkCaughtUp, type SyncCheck } from '../../caught-up.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import type { Programs } from '../programs.ts';
import { readFilters } from './filters.ts';
import { Keeper } from './keeper.ts';
import { Triggers } from './triggers.ts';

export interface StandingOptions {
  readonly core: CoreClient;
  readonly sync: SyncCheck;
  readonly programs: Programs;
  readonly nodeId: string;
  readonly dataDir: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Programs that run without being called by anybody: keeps running what is persistent, and calls what asks for messages, where
 * the core node says that it is this node's. While that is silent or lacks what its peers have, everything stays as it is. Ends with the
 * signal.
 */
export async function runStanding({
  core,
  sync,
  programs,
  nodeId,
  dataDir,
  log,
  signal,
}: StandingOptions): Promise<void> {
  const keeper = new Keeper({ programs, log, signal });
  const triggers = await Triggers.open({ core, programs, directory: join(dataDir, 'programs'), log, signal });
  const ask = async () => {
    await checkCaughtUp(sync);
    const { programs: assigned, cursor } = await core.listAssignedPrograms(nodeId);
    keeper.set(new Set(assigned.filter(({ persistent }) => persistent).map(({ item_hash }) => item_hash)));
    const filters = assigned.map(({ item_hash, message }) => [item_hash, readFilters(message)] as const);
    triggers.set(new Map(filters.filter(([, own]) => own.length > 0)), cursor);
  };
  const loop = { name: 'assigned programs', intervalMs: PROGRAM_LIMITS.assignedEveryMs, signal, log };
  await Promise.all([runLoop(loop, ask), triggers.work()]);
  await keeper.settled();
}
