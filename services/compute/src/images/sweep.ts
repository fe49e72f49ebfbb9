import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '@skerry/kit';
import { STAT_BLOCK_BYTES } from '../host/capacity.ts';
import { missingRoom } from '../host/room.ts';
import { buildPrefixOf, IMAGE_FILES, type Image, MANIFEST } from './image.ts';

/** An image that is a file of the network. Nothing but asking for one again is lost with it. */
const FILE_IMAGE = /^file-[0-9a-f]{64}$/;
const UNUSED_MS = 24 * 3_600_000;
/** Who asked for it a moment ago may not have linked its disk yet. */
const ASKED_FOR_MS = 10 * 60_000;

/** Somebody asked for the image. */
export async function noteUse({ directory }: Pick<Image, 'directory'>): Promise<void> {
  const now = new Date();
  await utimes(join(directory, MANIFEST), now, now).catch(() => {});
}

/**
 * Removes images of files that nobody asked for within a day; where the disk has less than its reserve, also younger ones, those
 * first that were not asked for longest. Gives the names of their directories.
 */
export async function sweepFileImages(directory: string, nowMs: number): Promise<string[]> {
  const images = await listFileImages(directory);
  let missingBytes = images.length === 0 ? 0 : await missingRoom(directory);
  const removed: string[] = [];
  for (const { name, usedMs, takenBytes } of images) {
    const unusedMs = nowMs - usedMs;
    if (unusedMs < ASKED_FOR_MS || (unusedMs < UNUSED_MS && missingBytes <= 0)) break;
    await remove(directory, name);
    missingBytes -= takenBytes;
    removed.push(name);
  }
  return removed;
}

/** Those that are whole, the one first that was not asked for longest. */
async function listFileImages(directory: string) {
  const names = await readdir(directory).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const found: { name: string; usedMs: number; takenBytes: number }[] = [];
  for (const name of names.filter((one) => FILE_IMAGE.test(one))) {
    const [manifest, disk] = await Promise.all(
      [MANIFEST, IMAGE_FILES.disk].map((file) => stat(join(directory, name, file)).catch(() => undefined)),
    );
    if (manifest)
      found.push({
        ...{ name, usedMs: manifest.mtimeMs },
        takenBytes: (disk?.blocks ?? 0) * STAT_BLOCK_BYTES,
      });
  }
  return found.sort((one, other) => one.usedMs - other.usedMs);
}

/** At once for whoever looks for it: what is removed file by file would be found without its disk. */
async function remove(directory: string, name: string): Promise<void> {
  const gone = join(directory, `${buildPrefixOf(name)}${randomBytes(6).toString('hex')}`);
  try {
    await rename(join(directory, name), gone);
  } catch (error) {
    // Another process that shares the cache was quicker.
    if (isMissing(error)) return;
    throw error;
  }
  await rm(gone, { recursive: true, force: true });
}
