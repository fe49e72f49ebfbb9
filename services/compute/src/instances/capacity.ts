import type { Logger } from '@skerry/kit';
import {
  type Capacity,
  type CapacitySettings,
  decideCapacity,
  decideSpareGib,
  readMachine,
  withoutPrograms,
} from '../host/capacity.ts';
import { readCopies } from './disks/copies.ts';
import { readPromisees, readWritten } from './disks/promised.ts';

const GIB = 1024 ** 3;

/** What the node's machine has, with what its instances wrote of what they were promised. */
export interface NodeMachine extends Capacity {
  /** What snapshots, backups and instances that moved away have beside that: `diskGib` does not include it. */
  readonly copiesBytes: number;
}

export async function readNodeMachine(dataDir: string, log: Logger): Promise<NodeMachine> {
  const promisees = await readPromisees(dataDir, log);
  const machine = await readMachine(dataDir, await readWritten(dataDir, promisees));
  return { ...machine, copiesBytes: (await readCopies(dataDir, promisees)).writtenBytes };
}

/**
 * What the node would offer to instances, those that it has included, if there were no copies; and how much those may have beside that.
 * Whole GiB of them are a part of it which is not offered while they are there: an instance that moved away comes back to the disk that it
 * left. Pure.
 * @param programs what programs may have, beside what they have written
 */
export function decideOffer(
  settings: CapacitySettings,
  machine: NodeMachine,
  programs: Pick<Capacity, 'memoryMib' | 'diskGib'>,
): { readonly capacity: Capacity; readonly besideBytes: number } {
  const { copiesBytes, ...present } = machine;
  const copiesGib = Math.floor(copiesBytes / GIB);
  const left = withoutPrograms({ ...present, diskGib: present.diskGib + copiesGib }, programs);
  const capacity = decideCapacity(settings, left);
  const restBytes = copiesBytes - copiesGib * GIB;
  return { capacity, besideBytes: Math.max(0, restBytes + decideSpareGib(left, capacity) * GIB) };
}
