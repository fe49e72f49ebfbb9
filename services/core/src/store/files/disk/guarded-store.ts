import type { Readable } from 'node:stream';
import { AppError } from '@skerry/protocol';
import type { BlobStore, ReceivedBlob } from '../blob-store.ts';
import type { FilesDisk } from './files-disk.ts';

const isNotFound = (error: unknown) => error instanceof AppError && error.code === 'FILE_NOT_FOUND';

const destroy = (stream: Readable) => stream.destroy();

function guardReceived(blob: ReceivedBlob, disk: FilesDisk): ReceivedBlob {
  return {
    hash: blob.hash,
    sizeBytes: blob.sizeBytes,
    keep: () =>
      disk.write(async () => {
        await disk.require();
        await blob.keep();
      }),
    // Nobody waits for a disk that hangs: what is left there goes at the next start.
    discard: () => disk.write(() => blob.discard()).catch(() => {}),
  };
}

/**
 * The same blobs, as long as their disk is there: that nothing is found says nothing where another directory is in its place. All of it
 * throws STORAGE_UNAVAILABLE then, and where the disk hangs.
 */
export function guardStore(blobs: BlobStore, disk: FilesDisk): BlobStore {
  const orAway = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (isNotFound(error)) await disk.require();
      throw error;
    }
  };
  return {
    ...blobs,
    async receive(source, limitBytes, sizeBytes) {
      let isBegun = false;
      try {
        const received = await disk.write(
          async () => {
            await disk.require();
            isBegun = true;
            return await blobs.receive(source, limitBytes, sizeBytes);
          },
          (late) => late.discard(),
        );
        return guardReceived(received, disk);
      } catch (error) {
        // Who writes it waits for the disk, and would go on reading when that is back.
        if (isBegun && disk.hang !== undefined) source.on('error', () => {}).destroy();
        throw error;
      }
    },
    find: (hash) =>
      disk.read(async () => {
        const found = await blobs.find(hash);
        if (!found) await disk.require();
        return found;
      }),
    read: (hash, range) => disk.read(() => orAway(() => blobs.read(hash, range)), destroy),
    ...(blobs.readToSend && {
      readToSend: (hash, range) => disk.read(() => orAway(() => blobs.readToSend!(hash, range)), destroy),
    }),
    list: (after, limit, unread) =>
      disk.read(async () => {
        const found = await blobs.list(after, limit, unread);
        // Behind it: what was listed was the right directory's.
        await disk.require();
        return found;
      }),
    remove: (hash) =>
      disk.write(async () => {
        await disk.require();
        await blobs.remove(hash);
      }),
  };
}
