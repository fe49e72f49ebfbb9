import { open, readdir, rm, stat, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isMissing, renameDurably, syncFile } from '@skerry/kit';
import { AppError, isSshKey, NETWORK_PARSERS, type NetworkVolume, volumesMib } from '@skerry/protocol';
import { limited } from '../../files/limited.ts';
import {
  type FileRef,
  findMessage,
  readContent,
  resolveFile,
  type VersionSource,
} from '../../files/message.ts';
import { openNetworkFile, type SizeLimit } from '../../files/network-file.ts';
import { chunksUnless, unless } from '../../files/unless.ts';
import { withinRoom } from '../../host/room.ts';
import { run } from '../../host/run.ts';
import { MACHINE_FILES, type Volume } from '../../vm/machine.ts';

const SECTOR_BYTES = 512;
const MIB = 1024 ** 2;
const VOLUME_FILE = /^volume-[0-9]+\.raw$/;
/** Paths that need no quoting anywhere, without `..`. */
const MOUNT = /^(\/(?!\.\.?(\/|$))[A-Za-z0-9._-]+)+\/?$/;

/** What an instance's message asks for beside what every message of an instance says; only the network form has that. */
async function readAsked(core: VersionSource, instanceId: string) {
  const answer = await findMessage(core, instanceId);
  const none = { volumes: [], sshKeys: [] };
  if (!answer?.message) return none;
  const { content, isNetworkForm } = await readContent(core, instanceId, answer);
  if (!isNetworkForm) return none;
  const { volumes, authorized_keys: keys } = NETWORK_PARSERS.INSTANCE(content);
  return { volumes: volumes ?? [], sshKeys: (keys ?? []).filter(isSshKey) };
}

/** A file system of its own, empty. */
async function makeEmpty(path: string, sizeMib: number): Promise<void> {
  await run('mke2fs', ['-q', '-t', 'ext4', '-E', 'root_owner=0:0', path, `${sizeMib}M`]);
}

/**
 * A file of the network, as it is; a disk consists of whole sectors.
 * @param limit what it may have, and what it is called where that is too little
 */
async function fetchTo(
  path: string,
  core: VersionSource,
  ref: FileRef,
  limit: SizeLimit,
  signal: AbortSignal,
): Promise<void> {
  const opening = resolveFile(core, ref).then((name) => openNetworkFile(core, name, limit));
  const { bytes } = await unless(signal, opening);
  const file = await open(path, 'wx', 0o600);
  try {
    const fetched = withinRoom(limited(chunksUnless(signal, bytes), limit.bytes, limit.what), dirname(path));
    for await (const chunk of fetched) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
  const { size } = await stat(path);
  await truncate(path, Math.max(1, Math.ceil(size / SECTOR_BYTES)) * SECTOR_BYTES);
}

/** In bytes; undefined where there is none. */
const sizeOf = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ size }) => size,
    (error) => {
      if (isMissing(error)) return undefined;
      throw error;
    },
  );

function volumeOf(asked: NetworkVolume, index: number): Volume {
  const mount = asked.mount && MOUNT.test(asked.mount) ? asked.mount : null;
  const isReadOnly = 'ref' in asked;
  return { file: `volume-${index}.raw`, isReadOnly, sizeMib: volumesMib([asked]), mount };
}

export interface VolumeOptions {
  readonly instanceId: string;
  readonly directory: string;
  /** The room of the instance. */
  readonly diskGib: number;
  /** What all files that are fetched for it may have together. */
  readonly limitBytes: number;
}

/** Puts one volume at its path, whole. @param takenBytes what those before it have of what may be fetched */
async function makeVolume(
  path: string,
  core: VersionSource,
  asked: NetworkVolume,
  limitBytes: number,
  takenBytes: number,
  signal: AbortSignal,
): Promise<void> {
  const draft = `${path}.tmp`;
  await rm(draft, { force: true });
  try {
    if ('ref' in asked) {
      const what = takenBytes === 0 ? 'a volume' : `a volume beside ${takenBytes} bytes of others`;
      const limit = { bytes: Math.max(0, limitBytes - takenBytes), what };
      await fetchTo(draft, core, { ref: asked.ref, useLatest: asked.use_latest ?? true }, limit, signal);
    } else await makeEmpty(draft, asked.size_mib);
    await syncFile(draft);
    await renameDurably(draft, path);
  } catch (error) {
    // Where the disk is full nothing else would remove it: there is no room to try again.
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * Makes the volumes of an instance in its directory. Those that are there are kept. Gives all keys of its message, too.
 * Throws what reading a message and a file throws, STORAGE_FULL, FILE_TOO_LARGE, DISK_TOO_SMALL.
 * @param signal no file is fetched any further once it ends; its reason is thrown
 */
export async function makeVolumes(
  core: VersionSource,
  { instanceId, directory, diskGib, limitBytes }: VolumeOptions,
  signal: AbortSignal,
): Promise<{ volumes: Volume[]; rootMib: number; sshKeys: readonly string[] }> {
  const { volumes: asked, sshKeys } = await readAsked(core, instanceId);
  const volumes = asked.map(volumeOf);
  const rootMib = rootMibOf(diskGib, volumes);
  let takenBytes = 0;
  for (const [index, one] of asked.entries()) {
    const path = join(directory, volumes[index]!.file);
    if ((await sizeOf(path)) === undefined) await makeVolume(path, core, one, limitBytes, takenBytes, signal);
    if ('ref' in one) takenBytes += (await stat(path)).size;
  }
  return { volumes, rootMib, sshKeys };
}

/**
 * Removes what was fetched for an instance: files of the network are nobody's data, and are fetched again where it starts.
 * @param volumes undefined where there was none when the instance came, and it never had a disk: then nothing was written to any
 */
export async function dropFetched(directory: string, volumes: readonly Volume[] | undefined): Promise<void> {
  const names = await listNames(directory);
  // Whatever the record says.
  if (!volumes && names.includes(MACHINE_FILES.disk)) return;
  const isFetched = (name: string) =>
    volumes ? volumes.some(({ file, isReadOnly }) => isReadOnly && file === name) : VOLUME_FILE.test(name);
  for (const name of names.filter(isFetched)) await rm(join(directory, name), { force: true });
}

/** The volumes whose files are in a directory. Nobody knows which were fetched: its guest may have written to all of them. */
export async function findVolumes(directory: string): Promise<Volume[]> {
  const found: Volume[] = [];
  for (const file of (await listNames(directory)).filter((name) => VOLUME_FILE.test(name))) {
    const bytes = await sizeOf(join(directory, file));
    if (bytes === undefined) continue;
    found.push({ file, isReadOnly: false, sizeMib: Math.ceil(bytes / MIB), mount: null });
  }
  return found;
}

const listNames = (directory: string): Promise<string[]> =>
  readdir(directory).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });

/** What is left of an instance's room for its own disk. Throws DISK_TOO_SMALL. */
export function rootMibOf(diskGib: number, volumes: readonly Pick<Volume, 'sizeMib'>[] = []): number {
  const left = diskGib * 1024 - volumes.reduce((sum, { sizeMib }) => sum + sizeMib, 0);
  if (left <= 0) throw new AppError('DISK_TOO_SMALL', 'the volumes leave no room for a disk');
  return left;
}
