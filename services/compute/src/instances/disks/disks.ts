import { randomBytes } from 'node:crypto';
import { copyFile, link, mkdir, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { isMissing, makeDirectory, renameDurably, syncDirectory, syncFile } from '@skerry/kit';
import { hostnameOf } from '@skerry/protocol';
import { runImageTool } from '../../host/image-tool.ts';
import { machineUid } from '../../host/users.ts';
import { filesOf, IMAGE_FILES, type Image } from '../../images/image.ts';
import type { Ipv4Link } from '../../network/ipv4.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import { type Seed, writeSeed } from '../../vm/seed.ts';
import type { Place } from '../place.ts';
import { instanceDirectory } from '../record/record.ts';

/**
 * Puts an image's files below the data directory (as further names of the same bytes where that is possible) and gives the
 * directory's name there. An instance's disk only holds what differs from its image: the image must live as long as the
 * disk, while the cache may be emptied at any time.
 */
export async function keepBase(dataDir: string, image: Image): Promise<string> {
  const name = join('bases', `${image.name.replaceAll(':', '-')}-${image.buildId}`);
  const target = join(dataDir, name);
  if (await isThere(target)) {
    // Used now: who removes images that no disk needs sees that this one is about to be.
    const now = new Date();
    await utimes(target, now, now);
    return name;
  }
  await makeDirectory(join(dataDir, 'bases'), 0o755);
  const directory = `${target}.${randomBytes(4).toString('hex')}.tmp`;
  await mkdir(directory);
  try {
    for (const file of filesOf(image)) await linkOrCopy(join(image.directory, file), join(directory, file));
    await syncDirectory(directory);
    await renameDurably(directory, target);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    // Another instance's preparation may have been quicker.
    if (!(await isThere(target))) throw error;
  }
  return name;
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK') throw error;
    await copyFile(from, to);
    await syncFile(to);
  }
}

export interface DiskOptions extends Pick<Seed, 'sshKeys' | 'nameServers' | 'volumes'> {
  /** The size of its own disk. */
  readonly rootMib: number;
}

/**
 * Makes an instance's disk and seed. A disk that is there already is kept: it holds its owner's data. Gives the directory,
 * below the data directory, that the disk needs.
 */
export async function makeDisks(
  dataDir: string,
  base: string,
  place: Place,
  ipv4: Ipv4Link,
  { sshKeys, rootMib, volumes, nameServers }: DiskOptions,
): Promise<string> {
  const directory = instanceDirectory(dataDir, place.id);
  await makeDirectory(directory);
  const seed = {
    instanceId: `iid-${place.id}`,
    hostname: hostnameOf(place.id),
    sshKeys,
    mac: place.mac,
    address: `${place.guest}/124`,
    ipv4,
    nameServers,
    volumes,
  };
  const [made] = await Promise.all([
    makeDisk(dataDir, base, place.id, rootMib),
    writeSeed(seed, join(directory, MACHINE_FILES.seed)),
  ]);
  return made;
}

async function makeDisk(dataDir: string, base: string, id: string, sizeMib: number): Promise<string> {
  const directory = instanceDirectory(dataDir, id);
  const disk = join(directory, MACHINE_FILES.disk);
  if (await isThere(disk)) return (await baseOf(dataDir, disk)) ?? base;
  const temporary = `${disk}.tmp`;
  await rm(temporary, { force: true });
  const backing = join(dataDir, base, IMAGE_FILES.disk);
  const create = ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', backing, temporary, `${sizeMib}M`];
  const files = { uid: machineUid(id), reads: [backing], writes: [temporary] };
  await runImageTool(['qemu-img', ...create], files);
  await syncFile(temporary);
  await renameDurably(temporary, disk);
  return base;
}

/** Of a disk from before, whose making or removal was cut off: its image may be an older one than the name means now. */
export async function baseOf(dataDir: string, disk: string): Promise<string | undefined> {
  const info = ['info', '--force-share', '--output=json', '-f', 'qcow2', disk];
  const shown = await runImageTool(['qemu-img', ...info], {
    uid: machineUid(basename(dirname(disk))),
    reads: [disk],
  });
  const backing = (JSON.parse(shown) as { 'backing-filename'?: string })['backing-filename'];
  if (backing === undefined) return undefined;
  const base = relative(dataDir, dirname(backing));
  return base.startsWith('bases/') ? base : undefined;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
