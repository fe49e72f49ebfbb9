import { open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type CoreClient, fileHashOf } from '@skerry/client';
import { AppError, isCid } from '@skerry/protocol';
import { type CidSource, openCidFile } from '../files/cid-file.ts';
import { limited } from '../files/limited.ts';
import { fileOfResponse, type NetworkFile } from '../files/network-file.ts';
import { withinRoom } from '../host/room.ts';
import { convertDisk, readBootKind, readDiskFormat } from './convert.ts';
import { IMAGE_FILES } from './image.ts';
import type { Report } from './progress.ts';

/** Files of the network, by hash. */
export type FileSource = CidSource & Pick<CoreClient, 'getMessage'>;

/** What the name of an image looks like that is a file of the network: its SHA-256, or the message that stored it. */
const HASH = /^[0-9a-f]{64}$/;
const MIB = 1024 * 1024;
/** Of the whole: the rest is for converting. */
const DOWNLOAD_PERCENT = 80;

export function isFileImage(name: string): boolean {
  return HASH.test(name);
}

/**
 * Makes an image, in an empty directory, of a qcow2 or raw disk that is stored on the network: fetched, verified,
 * converted. Throws FILE_NOT_FOUND, FILE_TOO_LARGE, FILE_CORRUPT, INVALID_IMAGE,
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
  await fetchFile(await openImageFile(files, name), download, limitBytes, report, signal);
  const { format, virtualBytes } = await readDiskFormat(download);
  report({ percent: DOWNLOAD_PERCENT, message: `converting a ${format} image` });
  const disk = join(directory, IMAGE_FILES.disk);
  await convertDisk(download, format, disk, signal);
  await rm(download);
  const boot = await readBootKind(disk);
  return { kernelVersion: '', diskMib: Math.ceil(virtualBytes / MIB), boot };
}

async function openImageFile(files: FileSource, name: string): Promise<NetworkFile> {
  const { hash, response } = await findFile(files, name);
  if (!isCid(hash)) return fileOfResponse(response, hash);
  await response.body?.cancel();
  return openCidFile(files, hash);
}

/** The file itself, or what the message with that hash stored. */
async function findFile(files: FileSource, name: string): Promise<{ hash: string; response: Response }> {
  try {
    const response = await files.getFile(name);
    return { hash: fileHashOf(response, name), response };
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'missing') throw error;
    const message = await files.getMessage(name).catch((failure: unknown) => {
      if (failure instanceof AppError && failure.kind === 'missing') return undefined;
      throw failure;
    });
    const hash = (message?.content as { item_hash?: unknown } | undefined)?.item_hash;
    if (message?.type !== 'STORE' || typeof hash !== 'string' || !(HASH.test(hash) || isCid(hash)))
      throw notThere(name, error);
    return { hash, response: await files.getFile(hash) };
  }
}

const notThere = (name: string, cause: unknown) =>
  new AppError('UNKNOWN_IMAGE', `the network has no file ${name} to use as an image`, { cause });

async function fetchFile(
  { sizeBytes: expected = 0, bytes: source }: NetworkFile,
  path: string,
  limitBytes: number,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  let bytes = 0;
  try {
    for await (const chunk of withinRoom(limited(source, limitBytes, 'an image file'), dirname(path))) {
      signal.throwIfAborted();
      bytes += chunk.length;
      await file.writeFile(chunk);
      const percent = expected > 0 ? Math.min(1, bytes / expected) * DOWNLOAD_PERCENT : 1;
      report({ percent: Math.floor(percent), message: `fetching the image, ${Math.floor(bytes / MIB)} MiB` });
    }
  } finally {
    await file.close();
  }
}
