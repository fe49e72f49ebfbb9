import { open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError, isItemHash64 } from '@skerry/protocol';
import { limited } from '../files/limited.ts';
import { resolveFile, type VersionSource } from '../files/message.ts';
import { type NetworkFile, openNetworkFile, type SizeLimit } from '../files/network-file.ts';
import { chunksUnless, unless } from '../files/unless.ts';
import { withinRoom } from '../host/room.ts';
import { convertDisk, readBootKind, readDiskFormat } from './convert.ts';
import { IMAGE_FILES } from './image.ts';
import type { Report } from './progress.ts';

/** Files of the network, by hash. */
export type FileSource = VersionSource;

const MIB = 1024 * 1024;
/** Of the whole: the rest is for converting. */
const DOWNLOAD_PERCENT = 80;
/** There is a report for each percent, and for so many bytes where one is more. */
const REPORT_EVERY_BYTES = 64 * MIB;

/** Whether the name of an image is a file of the network: its SHA-256, or the message that stored it. */
export const isFileImage = isItemHash64;

/**
 * Makes an image, in an empty directory, of a qcow2 or raw disk that is stored on the network: fetched, verified,
 * converted. Throws UNKNOWN_IMAGE, HASH_MISMATCH, FILE_TOO_LARGE, FILE_CORRUPT, INVALID_IMAGE,
 * STORAGE_FULL.
 * @param limitBytes the largest file that is fetched
 */
export async function makeFileImage(
  files: FileSource,
  name: string,
  directory: string,
  limitBytes: number,
  report: Report,
  signal: AbortSignal,
): Promise<{ kernelVersion: string; diskMib: number; boot: 'firmware' | 'kernel' }> {
  const download = join(directory, 'download');
  const limit = { bytes: limitBytes, what: 'an image file' };
  const file = await unless(signal, openImageFile(files, name, limit));
  await fetchFile(file, download, limit, report, signal);
  const { format, virtualBytes } = await readDiskFormat(download);
  report({ percent: DOWNLOAD_PERCENT, message: `converting a ${format} image` });
  const disk = join(directory, IMAGE_FILES.disk);
  await convertDisk(download, format, disk, signal);
  await rm(download);
  const boot = await readBootKind(disk);
  return { kernelVersion: '', diskMib: Math.ceil(virtualBytes / MIB), boot };
}

/** The file itself, or what the message with that hash stored, as its sender signed it. */
async function openImageFile(files: FileSource, name: string, limit: SizeLimit): Promise<NetworkFile> {
  try {
    return await openNetworkFile(files, await resolveFile(files, { ref: name, useLatest: false }), limit);
  } catch (error) {
    throw error instanceof AppError && error.kind === 'missing' ? notThere(name, error) : error;
  }
}

const notThere = (name: string, cause: unknown) =>
  new AppError('UNKNOWN_IMAGE', `the network has no file ${name} to use as an image`, { cause });

async function fetchFile(
  { sizeBytes: expected = 0, bytes: source }: NetworkFile,
  path: string,
  limit: SizeLimit,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  let bytes = 0;
  let told = { percent: 0, bytes: 0 };
  try {
    const chunks = limited(chunksUnless(signal, source), limit.bytes, limit.what);
    for await (const chunk of withinRoom(chunks, dirname(path))) {
      bytes += chunk.length;
      await file.writeFile(chunk);
      const percent = expected > 0 ? Math.floor(Math.min(1, bytes / expected) * DOWNLOAD_PERCENT) : 1;
      if (percent === told.percent && bytes - told.bytes < REPORT_EVERY_BYTES) continue;
      const isFurther = told.bytes > 0;
      told = { percent, bytes };
      report({ percent, message: `fetching the image, ${Math.floor(bytes / MIB)} MiB`, isFurther });
    }
  } finally {
    await file.close();
  }
}
