import { readFile, statfs } from 'node:fs/promises';
import { availableParallelism, freemem, totalmem } from 'node:os';

export interface Capacity {
  readonly cpu: number;
  readonly memoryMib: number;
  readonly diskGib: number;
}

export interface CapacitySettings {
  readonly cpu: number | undefined;
  readonly memoryMib: number | undefined;
  readonly diskGib: number | undefined;
}

/** Kept back for the machine itself and for the other services on it. */
const MEMORY_RESERVE_MIB = 1_024;
const DISK_RESERVE_GIB = 5;
/** Of what a disk has beyond its reserve, volumes of programs have this share at most, though the operator names more. */
const PROGRAMS_DISK_SHARE = 0.25;
/** stat(2) counts in these, whatever the file system. */
export const STAT_BLOCK_BYTES = 512;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

export const NO_CAPACITY: Capacity = { cpu: 0, memoryMib: 0, diskGib: 0 };

/** What to offer: the operator's word where there is one, else what the machine has less the reserve. Pure. */
export function decideCapacity(settings: CapacitySettings, machine: Capacity): Capacity {
  return {
    cpu: settings.cpu ?? machine.cpu,
    memoryMib: settings.memoryMib ?? Math.max(0, machine.memoryMib - MEMORY_RESERVE_MIB),
    diskGib: settings.diskGib ?? Math.max(0, machine.diskGib - DISK_RESERVE_GIB),
  };
}

/** What a disk has beyond its reserve and what is offered of it; below 0 where it has less than that. Pure. */
export const decideSpareGib = (machine: Capacity, offered: Capacity): number =>
  machine.diskGib - DISK_RESERVE_GIB - offered.diskGib;

/**
 * What volumes of programs may have: of a small disk little. Pure.
 * @param freeGib what the disk has, with what they have now
 */
export const decideVolumesGib = (askedGib: number, freeGib: number): number =>
  Math.min(askedGib, Math.max(0, freeGib - DISK_RESERVE_GIB) * PROGRAMS_DISK_SHARE);

/** What is left of a machine where programs may take a part of it. Less than a GiB of disk has place in the reserve. Pure. */
export function withoutPrograms(
  machine: Capacity,
  { memoryMib, diskGib }: Pick<Capacity, 'memoryMib' | 'diskGib'>,
): Capacity {
  return {
    ...machine,
    memoryMib: Math.max(0, machine.memoryMib - memoryMib),
    diskGib: machine.diskGib - Math.floor(diskGib),
  };
}

/**
 * What the machine has. What this node's own guests use now is part of what it offers: memory counts as a whole, and what
 * instances wrote counts as free.
 * @param writtenBytes what they wrote of the disk that they were promised
 */
export async function readMachine(dataDir: string, writtenBytes: number): Promise<Capacity> {
  const disk = await statfs(dataDir);
  return {
    cpu: availableParallelism(),
    memoryMib: Math.floor(totalmem() / MIB),
    diskGib: Math.floor((disk.bavail * disk.bsize + writtenBytes) / GIB),
  };
}

export interface DiskUsage {
  readonly totalBytes: number;
  readonly availableBytes: number;
}

export async function readDiskUsage(path: string): Promise<DiskUsage> {
  const { blocks, bavail, bsize } = await statfs(path);
  return { totalBytes: blocks * bsize, availableBytes: bavail * bsize };
}

/** What programs can have without swapping (proc(5), MemAvailable), in bytes. */
export async function readAvailableMemory(): Promise<number> {
  const text = await readFile('/proc/meminfo', 'utf8').catch(() => '');
  const kib = /^MemAvailable:\s+([0-9]+) kB$/m.exec(text)?.[1];
  return kib === undefined ? freemem() : Number(kib) * 1024;
}
