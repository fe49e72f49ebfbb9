import type { Logger } from '@skerry/kit';
import {
  type Capacity,
  type CapacitySettings,
  decideCapacity,
  readMachine,
  withoutPrograms,
} from '../host/capacity.ts';
import { readWritten } from './disks/promised.ts';
import { readRecords } from './record/record.ts';

/** What the node offers to instances, those that it has included. @param programs what programs may have, beside what they have written */
export async function readNodeCapacity(
  config: CapacitySettings & { readonly dataDir: string },
  programs: Pick<Capacity, 'memoryMib' | 'diskGib'>,
  log: Logger,
): Promise<Capacity> {
  const { dataDir } = config;
  const writtenBytes = await readWritten(dataDir, await readRecords(dataDir, log));
  return decideCapacity(config, withoutPrograms(await readMachine(dataDir, writtenBytes), programs));
}
