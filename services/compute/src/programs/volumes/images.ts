import type { Stats } from 'node:fs';
import { mkdir, open, readFile, realpath, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { renameDurably, syncFile } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { CidSource } from '../../files/cid-file.ts';
import { limited } from '../../files/limited.ts';
import { openNetworkFile } from '../../files/network-file.ts';
import { unescapePath } from '../../groups/trees.ts';
import { STAT_BLOCK_BYTES } from '../../host/capacity.ts';
import { isDiskFull } from '../../host/disk-full.ts';
import { runImageTool } from '../../host/image-tool.ts';
import { checkReserve, type promiseRoom, withinRoom } from '../../host/room.ts';
import { run } from '../../host/run.ts';
import { TOOLS_UID } from '../../host/users.ts';
import { PROGRAM_LIMITS } from '../limits.ts';

/** File systems in files, made by this node: a stranger's own would be read by the kernel of the machine. */

const MIB = 1024 * 1024;

/** What a file takes of the disk: less than its size where nothing was written. */
export const takenMib = ({ blocks }: Pick<Stats, 'blocks'>) => (blocks * STAT_BLOCK_BYTES) / MIB;

/** How room on the disk is had. */
export type PromiseRoom = typeof promiseRoom;

/** What takes the room, for people. */
export const A_VOLUME = 'a volume of a program';
const SQUASHFS_SIGNATURE = 'hsqs';
const UNPACK_TIMEOUT_MS = 300_000;

/** An empty file system that takes no room before it is written to. Replaces nothing. Throws STORAGE_FULL. */
export async function makeImage(path: string, sizeMib: number, uid: number): Promise<void> {
  await checkReserve(dirname(path));
  const draft = `${path}.tmp`;
  await rm(draft, { force: true });
  const options = ['-q', '-t', 'ext4', '-m', '0', '-E', `root_owner=${uid}:${uid}`];
  await run('mke2fs', [...options, draft, `${sizeMib}M`]);
  await syncFile(draft);
  await renameDurably(draft, path);
}

/** Leaves no place of a mount where it fails: a damaged image is tried again with each call. */
export async function mountImage(path: string, directory: string, isReadOnly: boolean): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o711 });
  const options = `loop,nosuid,nodev,${isReadOnly ? 'ro' : 'rw'}`;
  try {
    await run('mount', ['-t', 'ext4', '-o', options, path, directory]);
  } catch (error) {
    await removePlace(directory);
    throw error;
  }
}

/** What a sandbox that ends still uses goes when that has ended. */
export async function unmount(directory: string): Promise<void> {
  await run('umount', ['-l', directory]);
  await removePlace(directory);
}

/** Why a place stays: it is gone, it is in use, or something is in it. */
const STAYS: ReadonlySet<unknown> = new Set(['ENOENT', 'EBUSY', 'ENOTEMPTY', 'ENOTDIR']);

/** Removes the place of a mount, which is empty. What is there all the same is a volume of somebody, and stays. */
export const removePlace = (directory: string): Promise<void> =>
  rmdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (!STAYS.has(error.code)) throw error;
  });

/**
 * Mounts below a directory, which an earlier process left: by the names that the kernel has for them, whatever links lead there
 * (proc_pid_mountinfo(5)).
 */
export async function listMounts(below: string): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8');
  const place = await realpath(below).catch(() => below);
  return text
    .split('\n')
    .map((line) => unescapePath(line.split(' ')[4] ?? ''))
    .filter((path) => path.startsWith(`${place}/`));
}

/** The same bytes, from the first of them on within room that was promised: whoever sends is told at once where there is none. */
async function* withPromise(
  source: AsyncIterable<Uint8Array>,
  promise: () => Promise<Disposable>,
): AsyncGenerator<Uint8Array> {
  let room: Disposable | undefined;
  try {
    for await (const chunk of source) {
      room ??= await promise();
      yield chunk;
    }
  } finally {
    room?.[Symbol.dispose]();
  }
}

async function fetchTo(path: string, core: CidSource, name: string, promise: PromiseRoom): Promise<void> {
  const { volumeFileBytes } = PROGRAM_LIMITS;
  const limit = { bytes: volumeFileBytes, what: A_VOLUME };
  const { sizeBytes = 0, bytes } = await openNetworkFile(core, name, limit);
  await rm(path, { force: true });
  const file = await open(path, 'wx', 0o644);
  try {
    const all = withPromise(limited(bytes, volumeFileBytes, A_VOLUME), () =>
      promise(path, Math.min(sizeBytes, volumeFileBytes), A_VOLUME),
    );
    for await (const chunk of withinRoom(all, dirname(path))) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
}

async function isSquashfs(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer } = await file.read(
      Buffer.alloc(SQUASHFS_SIGNATURE.length),
      0,
      SQUASHFS_SIGNATURE.length,
      0,
    );
    return buffer.toString('latin1') === SQUASHFS_SIGNATURE;
  } finally {
    await file.close();
  }
}

/**
 * Unpacks an archive into a file system of bounded size, by a tool that sees nothing else. Throws STORAGE_FULL where the disk has no
 * room for all of that, FILE_TOO_LARGE where the archive is more.
 */
async function unpackTo(
  image: string,
  archive: string,
  limitMib: number,
  promise: PromiseRoom,
): Promise<void> {
  const directory = `${image}.unpacking`;
  using _room = await promise(image, limitMib * MIB, 'a volume that is unpacked');
  await makeImage(image, limitMib, TOOLS_UID);
  await mountImage(image, directory, false);
  try {
    const files = { reads: [archive], directories: [directory] };
    const limits = { timeoutMs: UNPACK_TIMEOUT_MS };
    const options = ['-quiet', '-no-progress', '-no-xattrs', '-processors', '1', '-force'];
    const root = join(directory, 'root');
    await runImageTool(['unsquashfs', ...options, '-dest', root, archive], files, limits);
    // Whoever packed it was another user.
    await runImageTool(['chmod', '-R', 'a+rX', root], files, limits);
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    // The tool does not know which one is full: the disk, or the file system on it.
    await checkReserve(dirname(image));
    const why = `${A_VOLUME} unpacks to more than ${limitMib} MiB`;
    throw new AppError('FILE_TOO_LARGE', why, { cause: error });
  } finally {
    await run('umount', [directory]);
    await rm(directory, { recursive: true, force: true });
  }
}

/** Where the contents of a file are found once it was made ready. */
export interface ReadyFile {
  readonly kind: 'image' | 'plain';
  readonly path: string;
  /** What it takes of the disk. */
  readonly sizeMib: number;
}

const pathOf = (directory: string, name: string, kind: ReadyFile['kind']) =>
  join(directory, `${name}.${kind === 'image' ? 'ext4' : 'plain'}`);

/** A file of the network that was made ready before. */
export async function findReady(directory: string, name: string): Promise<ReadyFile | undefined> {
  for (const kind of ['image', 'plain'] as const) {
    const path = pathOf(directory, name, kind);
    const stats = await stat(path).catch(() => undefined);
    if (stats) return { kind, path, sizeMib: takenMib(stats) };
  }
  return undefined;
}

/**
 * A file of the network, made ready to be mounted: once, below a directory of its own name. Throws STORAGE_FULL, FILE_TOO_LARGE, and
 * leaves nothing of one that it fails at.
 */
export async function makeReady(
  directory: string,
  core: CidSource,
  name: string,
  promise: PromiseRoom,
  unpackedMib: number = PROGRAM_LIMITS.unpackedMib,
): Promise<ReadyFile> {
  const draft = join(directory, `${name}.part`);
  const image = pathOf(directory, name, 'image');
  const unpacked = `${image}.new`;
  try {
    await fetchTo(draft, core, name, promise);
    if (await isSquashfs(draft)) {
      await unpackTo(unpacked, draft, unpackedMib, promise);
      await syncFile(unpacked);
      await renameDurably(unpacked, image);
    } else {
      await syncFile(draft);
      await renameDurably(draft, pathOf(directory, name, 'plain'));
    }
  } finally {
    for (const path of [draft, unpacked]) await rm(path, { force: true });
  }
  return (await findReady(directory, name))!;
}
