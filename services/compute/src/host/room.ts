import { AppError } from '@skerry/protocol';
import { readDiskUsage } from './capacity.ts';

/** What is left free for what runs: a guest whose write finds no room waits. Below it nothing new is begun. */
const RESERVE_BYTES = 1024 ** 3;
/** Between two looks at how much is free. */
const LOOK_EVERY_BYTES = 16 * 1024 ** 2;

/** Throws STORAGE_FULL where a directory's disk has no more than its reserve. */
export async function checkReserve(directory: string): Promise<void> {
  if ((await readDiskUsage(directory)).availableBytes < RESERVE_BYTES)
    throw new AppError('STORAGE_FULL', "this machine's disk is full");
}

/** Throws STORAGE_FULL where so many bytes more would leave a directory's disk less than its reserve. @param what takes them */
export async function checkRoomFor(directory: string, bytes: number, what: string): Promise<void> {
  const free = Math.max(0, (await readDiskUsage(directory)).availableBytes - RESERVE_BYTES);
  if (bytes > free)
    throw new AppError('STORAGE_FULL', `${what} needs ${bytes} bytes, but only ${free} are available`);
}

/** The same bytes, for as long as the disk that they are written to, below `directory`, has more than its reserve. Throws STORAGE_FULL. */
export async function* withinRoom(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  directory: string,
): AsyncGenerator<Uint8Array> {
  let unseenBytes = LOOK_EVERY_BYTES;
  for await (const chunk of source) {
    unseenBytes += chunk.length;
    if (unseenBytes > LOOK_EVERY_BYTES) {
      await checkReserve(directory);
      unseenBytes = 0;
    }
    yield chunk;
  }
}

/**
 * How many bytes have to go where a disk has less than its reserve beside what is about to be written, so that it is not short again
 * at once; 0 where it has that.
 */
export async function missingRoom(directory: string, neededBytes = 0): Promise<number> {
  const { availableBytes } = await readDiskUsage(directory);
  const leftBytes = availableBytes - neededBytes;
  return leftBytes < RESERVE_BYTES ? 2 * RESERVE_BYTES - leftBytes : 0;
}
