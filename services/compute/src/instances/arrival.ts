import { searchQemu } from '../vm/process.ts';
import type { InstanceDeps } from './deps.ts';
import { hasDisk, takeBack } from './disks/released.ts';
import { findVolumes } from './disks/volumes.ts';
import type { Place } from './place.ts';
import {
  type InstanceRecord,
  instanceDirectory,
  newRecord,
  readRecord,
  setRecordAside,
  writeRecord,
} from './record/record.ts';
import type { Wanted } from './wanted.ts';

type ArrivalDeps = Pick<InstanceDeps, 'dataDir' | 'log'> & {
  readonly addresses: Pick<InstanceDeps['addresses'], 'claim' | 'keep'>;
};

/**
 * Notes an instance that this node takes, with what is here of it: the disk that it left, or that a record which cannot be read is of.
 *
 * @param nowMs later than all that was told before
 * @returns `isLeft`: its machine runs, and nobody holds it
 */
export async function noteArrival(
  { dataDir, addresses, log }: ArrivalDeps,
  { id, machineId }: Place,
  wanted: Wanted,
  nowMs: number,
): Promise<{ readonly record: InstanceRecord; readonly isLeft: boolean }> {
  await takeBack(dataDir, id);
  // Also where the disk came back before, and its new record could not be written.
  const old = await readRecord(dataDir, id, log);
  if (old) log.info({ instance: id }, 'the instance has returned and finds its disk');
  const fresh = newRecord(id, wanted, Math.max(nowMs, (old?.status?.observedAtMs ?? 0) + 1));
  const directory = instanceDirectory(dataDir, id);
  // One whose record was damaged may run all this time.
  const isLeft = (await searchQemu(directory, machineId)) !== undefined;
  // Its guest was set up with the address of the link that it had, which is kept for it: also where its record could not be read before.
  if (old?.ipv4) addresses.keep(id, old.ipv4.link);
  const ipv4 = old?.base || isLeft ? await addresses.claim(id, wanted) : undefined;
  const found = old ? diskOf(old) : await findData(directory, isLeft);
  const record = { ...fresh, ...found, ipv4 };
  if (!old) await setRecordAside(dataDir, id);
  await writeRecord(dataDir, record);
  return { record, isLeft };
}

/** What of a record belongs to the disks that came back. */
const diskOf = ({ base, kernel, volumes, isFound, discarded, restoring }: InstanceRecord) => ({
  ...{ base, kernel, volumes, isFound, discarded, restoring },
});

/** What is here without a record is its owner's, whatever becomes of its preparation. */
export async function findData(
  directory: string,
  isLeft: boolean,
): Promise<Pick<InstanceRecord, 'volumes' | 'isFound'>> {
  const volumes = await findVolumes(directory);
  if (volumes.length > 0) return { volumes, isFound: true };
  return isLeft || (await hasDisk(directory)) ? { isFound: true } : {};
}
