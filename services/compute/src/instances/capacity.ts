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
import { readWritten } from './disks/promised.ts';
import { readRecords } from './record/record.ts';

const GIB = 1024 ** 3;

/** What the node's machine has, with what its instances wrote of what they were promised. */
export interface NodeMachine extends Capacity {
  /** What snapshots, backups and instances that moved away have beside that. */
  readonly copiesBytes: number;
}

export async function readNodeMachine(dataDir: string, log: Logger): Promise<NodeMachine> {
  const records = await readRecords(dataDir, log);
  const machine = await readMachine(dataDir, await readWritten(dataDir, records));
  return { ...machine, copiesBytes: (await readCopies(dataDir, records)).writtenBytes };
}

/**
 * What the node offers to instances, those that it has included; and how much copies may have beside that. Pure.
 * @param programs what programs may have, beside what they have written
 */
export function decideOffer(
  settings: CapacitySettings,
  machine: NodeMachine,
  programs: Pick<Capacity, 'memoryMib' | 'diskGib'>,
): { readonly capacity: Capacity; readonly besideBytes: number } {
  const { copiesBytes, ...whole } = machine;
  const left = withoutPrograms(whole, programs);
  const capacity = decideCapacity(settings, left);
  // Of an offer that the disk has no room for, copies may have taken a part: they are beside it only as far as it goes in without them.
  return { capacity, besideBytes: Math.max(0, copiesBytes + decideSpareGib(left, capacity) * GIB) };
}
