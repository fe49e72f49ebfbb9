import { stat } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { Slots } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { readDiskUsage, STAT_BLOCK_BYTES } from './capacity.ts';

/** What is left free for what runs: a guest whose write finds no room waits. Below it nothing new is begun. */
const RESERVE_BYTES = 1024 ** 3;
/** Between two looks at how much is free. */
const LOOK_EVERY_BYTES = 16 * 1024 ** 2;

/** Throws STORAGE_FULL where a directory's disk has no more than its reserve. */
export async function checkReserve(directory: string): Promise<void> {
  if ((await readDiskUsage(directory)).availableBytes < RESERVE_BYTES)
    throw new AppError('STORAGE_FULL', "this node's disk is full");
}

/** What is being written to a path. */
interface Promised {
  readonly path: string;
  readonly bytes: number;
  /** The disk that it goes to. */
  readonly device: number;
  /** A snapshot or a backup: what it takes is not offered to instances. */
  readonly isCopy: boolean;
}

const promised = new Set<Promised>();
/** What is free and what is promised of it are looked at for one at a time. */
const turn = new Slots(1);

/** Nothing is promised meanwhile: who gives room away does so by what is there. */
export const whileNothingIsPromised = <T>(work: () => Promise<T>): Promise<T> => turn.run(work);

/** What is being copied below a directory, and what it may take in all. */
export const listCopying = (directory: string): Pick<Promised, 'path' | 'bytes'>[] =>
  [...promised].filter(
    ({ path, isCopy }) => isCopy && resolve(path).startsWith(`${resolve(directory)}${sep}`),
  );

const deviceOf = async (directory: string) => (await stat(directory)).dev;

async function unwrittenBytes({ path, bytes }: Promised): Promise<number> {
  const { blocks } = await stat(path).catch(() => ({ blocks: 0 }));
  return Math.max(0, bytes - blocks * STAT_BLOCK_BYTES);
}

/** How much of a directory's disk is free beside its reserve and what was promised and is not written yet; below 0 where it has less. */
async function readRoom(directory: string): Promise<number> {
  const device = await deviceOf(directory);
  const others = [...promised].filter((one) => one.device === device);
  const unwritten = (await Promise.all(others.map(unwrittenBytes))).reduce((sum, bytes) => sum + bytes, 0);
  return (await readDiskUsage(directory)).availableBytes - RESERVE_BYTES - unwritten;
}

/** By how many bytes a directory's disk has too little for so many more; 0 where it has the room. */
export const lackOfRoom = async (directory: string, bytes: number): Promise<number> =>
  Math.max(0, bytes - (await readRoom(directory)));

async function checkRoomFor(
  directory: string,
  bytes: number,
  what: string,
  besideBytes: number,
): Promise<void> {
  const free = Math.max(0, (await readRoom(directory)) - besideBytes);
  if (bytes > free)
    throw new AppError('STORAGE_FULL', `${what} needs ${bytes} bytes, but only ${free} are available`);
}

/**
 * Promises room for what is about to be written to a path, until it is there or is given up: two that begin at once would find the
 * same room free. Throws STORAGE_FULL where so many bytes more would leave the path's disk less than its reserve.
 * @param what takes them
 * @param readBeside of a copy: how many bytes more it has to leave
 */
export const promiseRoom = (
  path: string,
  bytes: number,
  what: string,
  readBeside?: () => Promise<number>,
): Promise<Disposable> =>
  turn.run(async () => {
    await checkRoomFor(dirname(path), bytes, what, (await readBeside?.()) ?? 0);
    const one = { path, bytes, device: await deviceOf(dirname(path)), isCopy: readBeside !== undefined };
    promised.add(one);
    return { [Symbol.dispose]: () => void promised.delete(one) };
  });

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

/** How many bytes have to go where a disk has less than its reserve, so that it is not short again at once; 0 where it has that. */
export async function missingRoom(directory: string): Promise<number> {
  const { availableBytes } = await readDiskUsage(directory);
  return availableBytes < RESERVE_BYTES ? 2 * RESERVE_BYTES - availableBytes : 0;
}
