import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { isMissing } from '@skerry/kit';
import { AppError, type ItemHash } from '@skerry/protocol';
import { asStorageError } from './storage-error.ts';
import { createYoungCollector } from './young-memory.ts';

/** Bytes gathered for one write: a system call of this size costs little beside the copy that it makes. */
const WRITE_BYTES = 1024 * 1024;
/** Limits of what is small whatever comes, such as a block of IPFS: its room is asked for as it is written. */
const SMALL_BYTES = 4 * 1024 * 1024;

export interface SpooledFile {
  readonly path: string;
  readonly hash: ItemHash;
  readonly sizeBytes: number;
}

export interface SpoolOptions {
  /** Whether no other process receives there; so where left out. */
  readonly isAlone?: boolean | undefined;
  /** Whether that around it is there; so where left out. If it is not, nothing is done in it before something is received. */
  readonly isHere?: boolean | undefined;
}

/** A directory for what is being received. */
export interface Spool {
  /** See `BlobStore.receive`. The file is on the disk when this resolves. */
  receive(source: Readable, limitBytes: number, sizeBytes?: number): Promise<SpooledFile>;
}

async function writeAll(handle: FileHandle, chunks: Buffer[]): Promise<void> {
  let rest = chunks;
  while (rest.length > 0) {
    let { bytesWritten } = await handle.writev(rest);
    // A disk that fills up takes a part; what it says of the rest is its answer.
    let whole = 0;
    while (whole < rest.length && bytesWritten >= rest[whole]!.length) bytesWritten -= rest[whole++]!.length;
    rest = rest.slice(whole);
    if (bytesWritten > 0) rest = [rest[0]!.subarray(bytesWritten), ...rest.slice(1)];
  }
}

/** Hashes and writes at the same time: one batch is on its way to the disk while the next one gathers and is hashed. */
async function copy(
  source: AsyncIterable<Buffer>,
  handle: FileHandle,
  limitBytes: number,
  reserve: Pick<DiskReserve, 'take'>,
  letGo: (bytes: number) => void,
): Promise<Omit<SpooledFile, 'path'>> {
  const digest = createHash('sha256');
  let sizeBytes = 0;
  let gathered: Buffer[] = [];
  let gatheredBytes = 0;
  let writing: Promise<void> | undefined;
  try {
    for await (const chunk of source) {
      sizeBytes += chunk.length;
      if (sizeBytes > limitBytes)
        throw new AppError('FILE_TOO_LARGE', `a file is limited to ${limitBytes} bytes here`);
      digest.update(chunk);
      gathered.push(chunk);
      gatheredBytes += chunk.length;
      if (gatheredBytes < WRITE_BYTES) continue;
      reserve.take(gatheredBytes);
      await writing;
      writing = writeAll(handle, gathered);
      // A failure is met at the next `await`; until then nobody else may call it unhandled.
      writing.catch(() => {});
      letGo(gatheredBytes);
      gathered = [];
      gatheredBytes = 0;
    }
  } finally {
    await writing;
  }
  reserve.take(gatheredBytes);
  await writeAll(handle, gathered);
  return { hash: digest.digest('hex') as ItemHash, sizeBytes };
}

/** What may come, where that is known: of what nobody announces, only that it is small. */
const atMost = (limitBytes: number, sizeBytes: number | undefined) =>
  sizeBytes === undefined && limitBytes > SMALL_BYTES ? undefined : Math.min(sizeBytes ?? 0, limitBytes);

/** A new file. That around the directory is there. */
async function createIn(directory: string, path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o644);
  } catch (error) {
    if (!isMissing(error)) throw error;
    await mkdir(directory);
    return await open(path, 'wx', 0o644);
  }
}

/** Makes the directory, and empties it of what an earlier process was still receiving when it ended. */
export async function openSpool(
  directory: string,
  reserve: DiskReserve = BOUNDLESS,
  { isAlone = true, isHere = true }: SpoolOptions = {},
): Promise<Spool> {
  if (isHere) await mkdir(directory, { recursive: true });
  if (isHere && isAlone)
    for (const name of await readdir(directory)) await rm(join(directory, name), { force: true });
  const letGo = createYoungCollector();
  return {
    async receive(source, limitBytes, sizeBytes) {
      // The source may fail while the file is being opened, when nobody reads it yet; the copy then meets the failure.
      source.on('error', () => {});
      const path = join(directory, randomUUID());
      let handle: FileHandle | undefined;
      try {
        reserve.take();
        using hold = reserve.hold(atMost(limitBytes, sizeBytes), directory);
        const counted = {
          take(bytes = 0) {
            reserve.take(bytes);
            hold.use(bytes);
          },
        };
        handle = await createIn(directory, path);
        const copied = await copy(source, handle, limitBytes, counted, letGo);
        await handle.sync();
        await handle.close();
        return { path, ...copied };
      } catch (error) {
        await handle?.close().catch(() => {});
        await rm(path, { force: true });
        throw asStorageError(error);
      }
    },
  };
}
