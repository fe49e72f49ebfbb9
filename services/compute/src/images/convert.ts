import { open, rm } from 'node:fs/promises';
import { AppError } from '@skerry/protocol';
import { isDiskFull } from '../host/disk-full.ts';
import { runImageTool, type ToolFiles } from '../host/image-tool.ts';
import { promiseRoom } from '../host/room.ts';
import { type DiskFormat, HEAD_BYTES, hasBootSector, parseDiskFormat } from './disk-format.ts';

/** What a tool may take that reads a stranger's file: a crafted image has made them eat all memory and time before. */
const ADDRESS_SPACE_BYTES = 2 * 1024 ** 3;
const CPU_SECONDS = 900;
const CONVERT_TIMEOUT_MS = 60 * 60_000;

export type BootKind = 'firmware' | 'kernel';

async function readHead(path: string): Promise<{ head: Uint8Array; fileBytes: number }> {
  const file = await open(path, 'r');
  try {
    const head = new Uint8Array(HEAD_BYTES);
    const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0);
    return { head: head.subarray(0, bytesRead), fileBytes: (await file.stat()).size };
  } finally {
    await file.close();
  }
}

/** What a stranger's file is. Throws INVALID_IMAGE. */
export async function readDiskFormat(path: string): Promise<DiskFormat> {
  const { head, fileBytes } = await readHead(path);
  return parseDiskFormat(head, fileBytes);
}

/**
 * Makes a disk of our own of a stranger's one that `readDiskFormat` took. Throws INVALID_IMAGE with the tool's own words, and
 * STORAGE_FULL where it would fill the machine: a small packed file may hold a large disk.
 */
export async function convertDisk(
  source: string,
  format: DiskFormat['format'],
  target: string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    const { required } = JSON.parse(
      await runLimited(
        ['measure', '--output=json', '-f', format, '-O', 'qcow2', source],
        { reads: [source] },
        signal,
      ),
    ) as { required: number };
    using _room = await promiseRoom(target, required, 'the disk');
    const files = { reads: [source], writes: [target] };
    await runLimited(['convert', '-f', format, '-O', 'qcow2', source, target], files, signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (isDiskFull(error) || (error instanceof AppError && error.code === 'HOST_NOT_READY')) throw error;
    throw new AppError('INVALID_IMAGE', `cannot read the disk: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function runLimited(
  args: readonly string[],
  files: ToolFiles,
  signal: AbortSignal | undefined,
): Promise<string> {
  const limits = { addressSpaceBytes: ADDRESS_SPACE_BYTES, cpuSeconds: CPU_SECONDS };
  return runImageTool(['qemu-img', ...args], files, { ...limits, signal, timeoutMs: CONVERT_TIMEOUT_MS });
}

/** How a disk of ours boots, by its first sectors. */
export async function readBootKind(disk: string): Promise<BootKind> {
  const head = `${disk}.head`;
  const part = [`bs=${HEAD_BYTES}`, 'count=1', `if=${disk}`, `of=${head}`];
  try {
    await runImageTool(['qemu-img', 'dd', '-f', 'qcow2', '-O', 'raw', ...part], { writes: [disk, head] });
    const { head: bytes } = await readHead(head);
    return hasBootSector(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      ? 'firmware'
      : 'kernel';
  } finally {
    await rm(head, { force: true });
  }
}
