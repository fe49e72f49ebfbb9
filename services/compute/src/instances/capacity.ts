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
  const disks = (await readRecords(dataDir, log)).map(({ id }) =>
    join(instanceDirectory(dataDir, id), MACHINE_FILES.disk),
  );
  return decideCapacity(config, withoutMemory(await readMachine(dataDir, disks), programMemoryMib));
}
