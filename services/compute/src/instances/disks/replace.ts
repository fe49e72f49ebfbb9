import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, renameDurably, syncFile } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { runImageTool } from '../../host/image-tool.ts';
import { convertDisk, readBootKind, readDiskFormat } from '../../images/convert.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import type { InstanceRecord, Restoring } from '../record/record.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { hasDisk, putDiskAside } from './released.ts';
import { needDisk } from './snapshots.ts';
import { rootMibOf } from './volumes.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

/** Begins again from the image: the disk is put aside for its grace, and another one is made. Volumes are kept, or erased. */
export async function reinstall(
  instance: IdleInstance,
  dataDir: string,
  nowMs: number,
  erasesVolumes: boolean,
): Promise<void> {
  await instance.stop();
  // Files of the network are fetched again where they are not there; those are nobody's data.
  const emptied = erasesVolumes ? (instance.record.volumes ?? []).filter((one) => !one.isReadOnly) : [];
  const discarded = [MACHINE_FILES.disk, ...emptied.map(({ file }) => file)];
  const { base, kernel, failure, isPoweredOff, isOwnerStopped } = instance.record;
  // By what is there: its record may be younger than its disk.
  if (await hasDisk(instance.directory)) await putDiskAside(dataDir, instance.record, nowMs);
  try {
    // Cut off before, nothing has happened; cut off after it, the rest is done before the next disk is made.
    await instance.update({ base: null, kernel: undefined, restoring: undefined, discarded, ...AWAKE });
  } catch (error) {
    const before = { base, kernel, failure, isPoweredOff, isOwnerStopped, discarded: undefined };
    await instance.update(before).catch(() => {});
    throw error;
  }
  await removeDiscarded(instance.directory, discarded);
}

export async function removeDiscarded(directory: string, files: readonly string[] = []): Promise<void> {
  for (const file of files) await rm(join(directory, file), { force: true });
}

/**
 * Puts a disk from a file in the place of the instance's, which is put aside for its grace. The file is verified and made
 * one of our own first: an image that is not one changes nothing. Throws INSTANCE_NOT_READY, INVALID_IMAGE, DISK_TOO_SMALL,
 * STORAGE_FULL.
 */
export async function restoreDisk(
  instance: IdleInstance,
  source: string,
  dataDir: string,
  nowMs: number,
): Promise<void> {
  const { record, directory } = instance;
  // What is put there before the instance's own disk is made would go with what that replaces.
  needDisk(instance);
  const { format, virtualBytes } = await readDiskFormat(source);
  const sizeBytes = rootMibOf(record.wanted.diskGib, record.volumes) * MIB;
  if (virtualBytes > sizeBytes)
    throw new AppError(
      'DISK_TOO_SMALL',
      `the file contains a disk of ${Math.ceil(virtualBytes / GIB)} GiB, but the instance has ${Math.floor(sizeBytes / GIB)} GiB`,
    );
  const draft = join(directory, `${MACHINE_FILES.disk}.new`);
  try {
    await convertDisk(source, format, draft);
    await runImageTool(['qemu-img', 'resize', '-q', '-f', 'qcow2', draft, `${sizeBytes}`], {
      writes: [draft],
    });
    await syncFile(draft);
    const boot = await readBootKind(draft);
    await instance.stop();
    await putDiskAside(dataDir, record, nowMs);
    const restoring = { inode: await readInode(draft), bootsByItself: boot === 'firmware' };
    await instance.update({ restoring });
    await renameDurably(draft, join(directory, MACHINE_FILES.disk));
    await instance.update(await findRestored(directory, restoring));
  } finally {
    await rm(draft, { force: true });
  }
}

const readInode = async (path: string): Promise<string> =>
  (await stat(path, { bigint: true })).ino.toString();

/** What follows for the record, wherever a restore was cut off: the disk itself says whether it is the new one. */
export async function findRestored(
  directory: string,
  { inode, bootsByItself }: Restoring,
): Promise<Partial<InstanceRecord>> {
  const present = await readInode(join(directory, MACHINE_FILES.disk)).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (present !== inode) return { restoring: undefined };
  // A bare file system goes on with the kernel that the instance had.
  return { restoring: undefined, ...(bootsByItself ? { kernel: null } : {}), ...AWAKE };
}

/** Nothing of the old disk's troubles is a reason for the new one to stay off. */
const AWAKE = { failure: null, isPoweredOff: false, isOwnerStopped: false } as const;
