import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { AppError, type ItemHash } from '@skerry/protocol';

/** A blob that was received whole and hashed, not yet kept. */
export interface ReceivedBlob {
  readonly hash: ItemHash;
  readonly sizeBytes: number;
  /** Makes it durable under its hash. */
  keep(): Promise<void>;
  /** Forgets it. Harmless after `keep`. */
  discard(): Promise<void>;
}

/** Files by the SHA-256 of their bytes. Whatever is readable under a hash is complete. */
export interface BlobStore {
  /** Streams to disk while hashing; memory does not grow with the size. Throws STORAGE_FULL; nothing is left behind. */
  receive(source: Readable): Promise<ReceivedBlob>;
  /** Size in bytes, or undefined where there is none. */
  findSize(hash: ItemHash): Promise<number | undefined>;
  read(hash: ItemHash): Readable;
}

const FULL = new Set(['ENOSPC', 'EDQUOT']);

function asStorageError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  return code !== undefined && FULL.has(code)
    ? new AppError('STORAGE_FULL', 'the node has no room for this file', { cause: error })
    : error;
}

/** A file's content reaches the disk before its name does, and the name before we say so. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Blobs in a directory: `ab/cd/abcd...`, written beside as `incoming/...` and renamed when complete. */
export async function createDirectoryBlobStore(directory: string): Promise<BlobStore> {
  const incoming = join(directory, 'incoming');
  const pathOf = (hash: ItemHash) => join(directory, hash.slice(0, 2), hash.slice(2, 4), hash);
  await mkdir(incoming, { recursive: true });
  // What an earlier process was still receiving when it ended.
  for (const name of await readdir(incoming)) await rm(join(incoming, name), { force: true });

  return {
    async receive(source) {
      // The source may fail while the file is being opened, when nobody reads it yet; the loop below then meets the failure.
      source.on('error', () => {});
      const temporary = join(incoming, randomUUID());
      const digest = createHash('sha256');
      let sizeBytes = 0;
      const handle = await open(temporary, 'wx', 0o644).catch((error) =>
        Promise.reject(asStorageError(error)),
      );
      try {
        for await (const chunk of source as AsyncIterable<Buffer>) {
          digest.update(chunk);
          sizeBytes += chunk.length;
          await handle.appendFile(chunk);
        }
        await handle.sync();
      } catch (error) {
        await rm(temporary, { force: true });
        throw asStorageError(error);
      } finally {
        await handle.close();
      }
      const hash = digest.digest('hex') as ItemHash;
      return {
        hash,
        sizeBytes,
        async keep() {
          const target = pathOf(hash);
          await mkdir(dirname(target), { recursive: true });
          await rename(temporary, target);
          await syncDirectory(dirname(target));
        },
        discard: () => rm(temporary, { force: true }),
      };
    },
    async findSize(hash) {
      try {
        return (await stat(pathOf(hash))).size;
      } catch {
        return undefined;
      }
    },
    read: (hash) => createReadStream(pathOf(hash)),
  };
}
