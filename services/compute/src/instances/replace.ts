import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@skerry/protocol';
import { syncDirectory } from '../host/atomic-file.ts';
import { runImageTool } from '../host/image-tool.ts';
import { convertDisk, readBootKind, readDiskFormat } from '../images/convert.ts';
import { MACHINE_FILES } from '../vm/machine.ts';
import type { Bench } from './errands.ts';
import { putDiskAside } from './released.ts';

const GIB = 1024 ** 3;

/** Begins again from the image: the disk is put aside for its grace, and another one is made. */
export async function reinstall(bench: Bench, dataDir: string, nowMs: number): Promise<void> {
  await bench.stop();
  if (bench.record.base !== null) await putDiskAside(dataDir, bench.record, nowMs);
  await bench.remember({ base: null, kernel: undefined, ...AWAKE });
  // Last: cut off before, the old disk is simply still there.
  await rm(join(bench.directory, MACHINE_FILES.disk), { force: true });
}

/**
 * Puts a disk from a file in the place of the instance's, which is put aside for its grace. The file is verified and made
 * one of our own first: an image that is not one changes nothing. Throws INVALID_IMAGE, DISK_TOO_SMALL, STORAGE_FULL.
 */
export async function restoreDisk(
  bench: Bench,
  source: string,
  dataDir: string,
  nowMs: number,
): Promise<void> {
  const { record, directory } = bench;
  const { format, virtualBytes } = await readDiskFormat(source);
  const sizeBytes = record.wanted.diskGib * GIB;
  if (virtualBytes > sizeBytes)
    throw new AppError(
      'DISK_TOO_SMALL',
      `the file holds a disk of ${Math.ceil(virtualBytes / GIB)} GiB, the instance has one of ${record.wanted.diskGib} GiB`,
    );
  const draft = join(directory, `${MACHINE_FILES.disk}.new`);
  try {
    await convertDisk(source, format, draft);
    await runImageTool(['qemu-img', 'resize', '-q', '-f', 'qcow2', draft, `${sizeBytes}`], {
      writes: [draft],
    });
    const boot = await readBootKind(draft);
    await bench.stop();
    await putDiskAside(dataDir, record, nowMs);
    await rename(draft, join(directory, MACHINE_FILES.disk));
    await syncDirectory(directory);
    // A bare file system goes on with the kernel that the instance had.
    await bench.remember({ ...(boot === 'firmware' ? { kernel: null } : {}), ...AWAKE });
  } finally {
    await rm(draft, { force: true });
  }
}

/** Nothing of the old disk's troubles is a reason for the new one to stay off. */
const AWAKE = { failure: null, isPoweredOff: false, isOwnerStopped: false } as const;
