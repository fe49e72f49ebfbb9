import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { ByteRange } from './blob-store.ts';

const CHUNK_BYTES = 256 * 1024;
/** One goes out, one waits, one is filled, and one more. */
const BUFFERS = 4;

/** Fills a buffer: a short read would let more chunks be on their way than there are buffers. */
async function fill(handle: FileHandle, buffer: Buffer, at: number): Promise<void> {
  for (let filled = 0; filled < buffer.length; ) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, at + filled);
    if (bytesRead === 0) throw new Error('a file is shorter than it was');
    filled += bytesRead;
  }
}

/**
 * A range of a file in chunks that use the same few buffers again: new memory for each is what costs most when a large file
 * is read. A chunk is good until its reader has asked for three more, so this is only for what hands each chunk on and
 * waits until it is gone, as `pipe` into a response does: a chunk is larger than what a socket takes without waiting.
 * Closes the handle at its end.
 */
export function readReusing(handle: FileHandle, { first, last }: ByteRange): Readable {
  const lengthBytes = last - first + 1;
  const chunkBytes = Math.min(CHUNK_BYTES, lengthBytes);
  const count = Math.min(BUFFERS, Math.ceil(lengthBytes / CHUNK_BYTES));
  const buffers = Array.from({ length: count }, () => Buffer.allocUnsafeSlow(chunkBytes));
  let at = first;
  let turn = 0;
  return new Readable({
    highWaterMark: CHUNK_BYTES,
    read() {
      const rest = last + 1 - at;
      if (rest <= 0) {
        this.push(null);
        return;
      }
      const chunk = buffers[turn++ % count]!.subarray(0, Math.min(rest, chunkBytes));
      fill(handle, chunk, at).then(
        () => {
          at += chunk.length;
          this.push(chunk);
        },
        (error: Error) => this.destroy(error),
      );
    },
    destroy(error, callback) {
      // It waits for what is being read.
      handle.close().then(
        () => callback(error),
        (failure: Error) => callback(error ?? failure),
      );
    },
  });
}
