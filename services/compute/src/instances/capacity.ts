import { link, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, type Logger } from '@skerry/kit';
import {
  type Capacity,
  type CapacitySettings,
  decideCapacity,
  decideSpareGib,
  readMachine,
  withoutPrograms,
} from '../host/capacity.ts';
import { promisedTo, withoutCopies } from './admission.ts';
import { readCopies } from './disks/copies.ts';
import { readPromisees, readUnrecorded, readWritten } from './disks/promised.ts';
import { type InstanceRecord, instancesDisk } from './record/record.ts';

const GIB = 1024 ** 3;

/** What the node's machine has, with what its instances wrote of what they were promised. */
export interface NodeMachine extends Capacity {
  /** What snapshots, backups and instances that moved away have beside that: `diskGib` does not include it. */
  readonly copiesBytes: number;
}

export async function readNodeMachine(dataDir: string, log: Logger): Promise<NodeMachine> {
  const promisees = await readPromisees(dataDir, log);
  const disk = await instancesDisk(dataDir);
  const machine = await readMachine(disk, await readWritten(dataDir, promisees));
  return { ...machine, copiesBytes: (await readCopies(dataDir, promisees)).writtenBytes };
}

const deviceOf = async (path: string) => (await stat(path)).dev;

/**
 * What programs find where their volumes are, and whether instances write to that disk, too: then what programs may have is not offered.
 * @param machine what the node's machine has for instances
 */
export async function readProgramsDisk(
  dataDir: string,
  machine: NodeMachine,
): Promise<{ readonly freeGib: number; readonly isShared: boolean }> {
  const isShared = (await deviceOf(dataDir)) === (await deviceOf(await instancesDisk(dataDir)));
  return { isShared, freeGib: isShared ? machine.diskGib : (await readMachine(dataDir, 0)).diskGib };
}

/** Beside `instances/`: what disks of instances are moved to as a whole, which needs them to be in one mount (rename(2), EXDEV). */
const MOVED_TO = ['released', 'backups'];
/** A name that nothing has. */
const NOTHING = '.skerry-none';

/**
 * Two mounts of one disk are one device, and nothing can be moved between them. A directory can be linked nowhere (link(2), EPERM), and the
 * kernel looks at the mounts before.
 */
const isOtherMount = (from: string, to: string): Promise<boolean> =>
  link(`${from}/.`, join(to, NOTHING)).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EXDEV',
  );

/** To which of these nothing can be moved from `instances/`: no instance can be released, reinstalled or backed up then. */
export async function findSplit(dataDir: string): Promise<string[]> {
  const disk = await instancesDisk(dataDir);
  const device = await deviceOf(disk).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
  // A node that never ran has no data directory yet.
  if (device === undefined) return [];
  const found: string[] = [];
  for (const name of MOVED_TO) {
    const own = join(dataDir, name);
    const at = await deviceOf(own).then(
      (ownDevice) => ({ directory: own, ownDevice }),
      async () => ({ directory: dataDir, ownDevice: await deviceOf(dataDir) }),
    );
    if (at.ownDevice !== device || (await isOtherMount(disk, at.directory))) found.push(name);
  }
  return found;
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

/** What a node offers, as `decideOffer` says. */
export interface Offer {
  readonly dataDir: string;
  readonly capacity: Capacity;
  readonly besideBytes: number;
}

/**
 * What is offered now, and what of it those have whose records cannot be read.
 * @param records those that can
 * @param except an instance that may come back to the disk that it left, or that its damaged record is of
 */
export async function readRoom(
  { dataDir, capacity, besideBytes }: Offer,
  records: readonly InstanceRecord[],
  except?: string,
): Promise<[offer: Capacity, unrecorded: Capacity[]]> {
  const unrecorded = await readUnrecorded(dataDir, new Set(records.map(({ id }) => id)));
  const { bytes } = await readCopies(dataDir, [...records, ...unrecorded], except);
  const others = unrecorded.filter(({ id }) => id !== except);
  return [withoutCopies(capacity, bytes, besideBytes), others.map(promisedTo)];
}
