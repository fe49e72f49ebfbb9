import { join } from 'node:path';
import { makeDirectory } from '@skerry/kit';
import { AppError, type Reason } from '@skerry/protocol';
import { unless } from '../../files/unless.ts';
import { readAvailableMemory, readDiskUsage } from '../../host/capacity.ts';
import { checkReserve } from '../../host/room.ts';
import { IMAGE_FILES } from '../../images/image.ts';
import type { Progress } from '../../images/progress.ts';
import type { Ipv4Link } from '../../network/ipv4.ts';
import type { Accelerator, Machine, Volume } from '../../vm/machine.ts';
import type { InstanceDeps } from '../deps.ts';
import { keepBase, makeDisks } from '../disks/disks.ts';
import { makeVolumes } from '../disks/volumes.ts';
import type { Place } from '../place.ts';
import { type InstanceRecord, instanceDirectory, instancesDisk } from '../record/record.ts';
import type { Wanted } from '../wanted.ts';

/** The image whose kernel boots disks that are a bare file system. */
const KERNEL_IMAGE = 'debian:12';
/** A status's progress is told at most this often, and ever more rarely while it goes on: the network keeps each telling for good. */
const PROGRESS_EVERY_MS = 1_000;
const PROGRESS_PER_ELAPSED = 0.1;
/** With this much a guest goes on that a full disk had stopped. */
const RESUME_BYTES = 64 * 1024 * 1024;
const MIB = 1024 * 1024;

/** Directories below the data directory. */
export interface Prepared {
  readonly base: string;
  /** Of the kernel and the initrd; null for a disk that boots by itself. */
  readonly kernel: string | null;
  readonly volumes: readonly Volume[];
}

/** While an instance is prepared. */
export interface Preparing {
  /** Told of progress. */
  readonly tell: (reason: Reason) => void;
  /**
   * Ends where something else is asked of the instance: then no image is waited for, though it is made all the same, for the next
   * time, and no file of a volume is fetched any further.
   */
  readonly changed: AbortSignal;
}

/**
 * Makes all that an instance needs before it can be started: its image, its seed, its disk. A disk that is there is kept.
 * Throws what ImageStore.ensure and makeVolumes do, STORAGE_FULL, DISK_TOO_SMALL, and the reason why `changed` ended.
 * @param claim gives the instance's part of the node's IPv4, of which there are few: one that can never start takes none
 */
export async function prepareInstance(
  deps: InstanceDeps,
  place: Place,
  wanted: Wanted,
  claim: () => Promise<Ipv4Link>,
  { tell, changed }: Preparing,
): Promise<Prepared> {
  const { images, core, fileLimitBytes, dataDir, nameServers, now } = deps;
  await checkReserve(await instancesDisk(dataDir));
  const begunMs = now();
  let toldAtMs = 0;
  const ensure = (name: string) => {
    const report = ({ percent, message }: Progress) => {
      if (!isProgressDue(begunMs, toldAtMs, now())) return;
      toldAtMs = now();
      tell({ code: 'BUILDING_IMAGE', message: `building ${name}: ${percent} %, ${message}` });
    };
    return unless(changed, images.ensure(name, report, wanted.owner));
  };
  const image = await ensure(wanted.image);
  const directory = instanceDirectory(dataDir, place.id);
  await makeDirectory(directory);
  const room = { diskGib: wanted.diskGib, limitBytes: fileLimitBytes };
  const {
    volumes,
    rootMib,
    sshKeys: all,
  } = await makeVolumes(core, { instanceId: place.id, directory, ...room }, changed);
  if (image.diskMib > rootMib)
    throw new AppError(
      'DISK_TOO_SMALL',
      `the image has a disk of ${image.diskMib} MiB, but the instance has ${rootMib} MiB`,
    );
  const newest = await keepBase(dataDir, image);
  // The first one may have been changed since, by another message.
  const sshKeys = wanted.sshKey === '' ? [] : [wanted.sshKey, ...all.slice(1)];
  const disks = { sshKeys, rootMib, volumes, nameServers };
  const base = await makeDisks(dataDir, newest, place, await claim(), disks);
  if (image.boot === 'firmware') return { base, kernel: null, volumes };
  const isComplete = image.kernelVersion !== '';
  const kernel = isComplete ? newest : await keepBase(dataDir, await ensure(KERNEL_IMAGE));
  return { base, kernel, volumes };
}

/** Whether progress is told, of what began and was last told at these times. Pure. */
export const isProgressDue = (begunMs: number, toldMs: number, nowMs: number): boolean =>
  nowMs - toldMs >= Math.max(PROGRESS_EVERY_MS, PROGRESS_PER_ELAPSED * (nowMs - begunMs));

/** How an instance's disk boots, and whether by hardware. */
export async function chooseBoot(
  { dataDir, accelerator }: Pick<InstanceDeps, 'dataDir' | 'accelerator'>,
  { base, kernel = base }: Pick<InstanceRecord, 'base' | 'kernel'>,
): Promise<{ boot: Machine['boot']; accelerator: Accelerator }> {
  // A disk that boots by itself brings no kernel to try hardware virtualisation with.
  if (kernel === null) return { boot: 'firmware', accelerator: accelerator.decided?.accelerator ?? 'tcg' };
  const directory = join(dataDir, kernel);
  const boot = { kernel: join(directory, IMAGE_FILES.kernel), initrd: join(directory, IMAGE_FILES.initrd) };
  return { boot, accelerator: (await accelerator.decide(boot.kernel, boot.initrd)).accelerator };
}

/** QEMU writes files of its own before a guest runs. Throws STORAGE_FULL. */
export async function checkRoom(dataDir: string): Promise<void> {
  if (!(await hasRoom(dataDir))) throw new AppError('STORAGE_FULL', "this node's disk is full");
}

/** Whether a guest that was stopped by a full disk may go on. */
export async function hasRoom(dataDir: string): Promise<boolean> {
  return (await readDiskUsage(await instancesDisk(dataDir))).availableBytes >= RESUME_BYTES;
}

/** What was promised is not always what there is: other programs of the machine have memory too. Throws NO_CAPACITY. */
export async function checkMemory(memoryMib: number): Promise<void> {
  const freeMib = Math.floor((await readAvailableMemory()) / MIB);
  if (freeMib < memoryMib)
    throw new AppError(
      'NO_CAPACITY',
      `the instance needs ${memoryMib} MiB of memory, but only ${freeMib} MiB are free`,
    );
}
