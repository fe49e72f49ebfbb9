import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DiskReserve } from '@skerry/database';
import { isMissing, syncDirectory } from '@skerry/kit';
import { AppError, type ItemHash } from '@skerry/protocol';
import type { BlobStore, KeptBlob, Unread } from './blob-store.ts';
import { isUnreadable } from './disk/unreadable.ts';
import { readReusing } from './reusing-reader.ts';
import { openSpool, type SpoolOptions } from './spool.ts';
import { asStorageError } from './storage-error.ts';

const READ_BYTES = 512 * 1024;
const INCOMING = 'incoming';
const HASH = /^[0-9a-f]{64}$/;
const PAIR = /^[0-9a-f]{2}$/;

/** Where a blob is in a directory of them. Pure. */
export const pathOfBlob = (directory: string, hash: string): string =>
  join(directory, hash.slice(0, 2), hash.slice(2, 4), hash);

/**
 * Makes directories below `root` durable: every name on the way is on the disk when this resolves. One that is there
 * already proves nothing: who made it may have died, or be waiting for the disk.
 */
function createDurableDirectories(root: string): (path: string) => Promise<void> {
  /** As many as there are directories, 65,792 at most. */
  const durable = new Set<string>([root]);
  return async (path) => {
    if (durable.has(path)) return;
    await mkdir(path, { recursive: true });
    const made: string[] = [];
    for (let one = path; !durable.has(one); one = dirname(one)) made.push(one);
    for (const one of made.reverse()) {
      await syncDirectory(dirname(one));
      durable.add(one);
    }
  };
}

async function findAt(path: string, hash: ItemHash): Promise<KeptBlob | undefined> {
  try {
    const { size, mtimeMs } = await stat(path);
    return { hash, sizeBytes: size, keptAtMs: mtimeMs };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Whether one of these blobs is in a directory of them. */
export async function holdsAny(directory: string, hashes: readonly string[]): Promise<boolean> {
  for (const hash of hashes) if (await findAt(pathOfBlob(directory, hash), hash as ItemHash)) return true;
  return false;
}

async function openAt(path: string, hash: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (isMissing(error)) throw new AppError('FILE_NOT_FOUND', `there is no file ${hash} here`);
    throw error;
  }
}

/** Names in a directory that fit a form and do not come before `from`, sorted. */
async function namesIn(directory: string, form: RegExp, from: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => form.test(name) && name >= from).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** What it comes to; undefined where the disk cannot read what is below a prefix, and somebody is told so. */
async function unlessUnread<T>(
  running: Promise<T>,
  prefix: string,
  unread: Unread | undefined,
): Promise<T | undefined> {
  try {
    return await running;
  } catch (error) {
    if (!unread || !isUnreadable(error)) throw error;
    unread(prefix, error);
    return undefined;
  }
}

/** The blobs below `root`, in the order of hashes, after one of them. Holds the names of one innermost directory at a time. */
async function* walk(root: string, after: string, unread: Unread | undefined): AsyncGenerator<KeptBlob> {
  for (const outer of await namesIn(root, PAIR, after.slice(0, 2))) {
    const from = after.startsWith(outer) ? after : '';
    const pairs = namesIn(join(root, outer), PAIR, from.slice(2, 4));
    for (const inner of (await unlessUnread(pairs, outer, unread)) ?? []) {
      const hashes = namesIn(join(root, outer, inner), HASH, after);
      for (const hash of (await unlessUnread(hashes, `${outer}${inner}`, unread)) ?? []) {
        if (hash === after) continue;
        const found = findAt(pathOfBlob(root, hash), hash as ItemHash);
        const blob = await unlessUnread(found, hash, unread);
        if (blob) yield blob;
      }
    }
  }
}

export interface DirectoryStoreOptions extends SpoolOptions {
  readonly reserve?: DiskReserve;
}

/** Blobs in a directory: `ab/cd/abcd...`, written beside as `incoming/...` and renamed when complete. */
export async function createDirectoryBlobStore(
  directory: string,
  { reserve, isAlone, isHere }: DirectoryStoreOptions = {},
): Promise<BlobStore> {
  const spool = await openSpool(join(directory, INCOMING), reserve, { isAlone, isHere });
  const makeDurable = createDurableDirectories(directory);
  const pathOf = (hash: string) => pathOfBlob(directory, hash);
  const openBlob = (hash: string) => openAt(pathOf(hash), hash);
  return {
    async receive(source, limitBytes, announcedBytes) {
      const { path, hash, sizeBytes } = await spool.receive(source, limitBytes, announcedBytes);
      let isNamed = false;
      let isKept = false;
      return {
        hash,
        sizeBytes,
        async keep() {
          if (isKept) return;
          const target = pathOf(hash);
          try {
            // The content reached the disk when it was received; now its name does, before we say so.
            await makeDurable(dirname(target));
            if (!isNamed) await rename(path, target);
            isNamed = true;
            await syncDirectory(dirname(target));
            isKept = true;
          } catch (error) {
            throw asStorageError(error);
          }
        },
        discard: () => rm(path, { force: true }),
      };
    },
    ...(reserve ? { hold: (bytes: number | undefined) => reserve.hold(bytes, directory) } : {}),
    find: (hash) => findAt(pathOf(hash), hash),
    async read(hash, range) {
      const handle = await openBlob(hash);
      return handle.createReadStream({
        highWaterMark: READ_BYTES,
        ...(range ? { start: range.first, end: range.last } : {}),
      });
    },
    readToSend: async (hash, range) => readReusing(await openBlob(hash), range),
    async list(after, limit, unread) {
      const found: KeptBlob[] = [];
      for await (const blob of walk(directory, after ?? '', unread)) {
        found.push(blob);
        if (found.length >= limit) break;
      }
      return found;
    },
    remove: (hash) => rm(pathOf(hash), { force: true }),
  };
}
