import { join } from 'node:path';
import type { Logger } from '@skerry/kit';
import {
  type Capacity,
  type CapacitySettings,
  decideCapacity,
  readMachine,
  withoutMemory,
} from '../host/capacity.ts';
import { MACHINE_FILES } from '../vm/machine.ts';
import { instanceDirectory, readRecords } from './record/record.ts';

/** What the node offers to instances, those that it has included. @param programMemoryMib what programs may have */
export async function readNodeCapacity(
  config: CapacitySettings & { readonly dataDir: string },
  programMemoryMib: number,
  log: Logger,
): Promise<Capacity> {
  const { dataDir } = config;
  const records = await readRecords(dataDir, log);
  // Volumes that a guest writes to are part of what its instance was promised, as its own disk is; files that were fetched are not.
  const disks = records.flatMap(({ id, volumes = [] }) => {
    const written = volumes.filter(({ isReadOnly }) => !isReadOnly).map(({ file }) => file);
    return [MACHINE_FILES.disk, ...written].map((file) => join(instanceDirectory(dataDir, id), file));
  });
  return decideCapacity(config, withoutMemory(await readMachine(dataDir, disks), programMemoryMib));
}
