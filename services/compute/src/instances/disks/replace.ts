import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { renameDurably, syncFile } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { runImageTool } from '../../host/image-tool.ts';
import { convertDisk, readBootKind, readDiskFormat } from '../../images/convert.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { putDiskAside } from './released.ts';
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
  for (const { file } of emptied) await rm(join(instance.directory, file), { force: true });
  if (instance.record.base !== null) await putDiskAside(dataDir, instance.record, nowMs);
  await instance.update({ base: null, kernel: undefined, ...AWAKE });
  // Last: cut off before, the old disk is simply still there.
  await rm(join(instance.directory, MACHINE_FILES.disk), { force: true });
}

/**
 * Puts a disk from a file in the place of the instance's, which is put aside for its grace. The file is verified and made
 * one of our own first: an image that is not one changes nothing. Throws INVALID_IMAGE, DISK_TOO_SMALL, STORAGE_FULL.
 */
export async function restoreDisk(
  instance: IdleInstance,
  source: string,
  dataDir: string,
  nowMs: number,
): Promise<void> {
  const { record, directory } = instance;
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
    await renameDurably(draft, join(directory, MACHINE_FILES.disk));
    // A bare file system goes on with the kernel that the instance had.
    await instance.update({ ...(boot === 'firmware' ? { kernel: null } : {}), ...AWAKE });
  } finally {
    await rm(draft, { force: true });
  }
}

/** Nothing of the old disk's troubles is a reason for the new one to stay off. */
const AWAKE = { failure: null, isPoweredOff: false, isOwnerStopped: false } as const;
