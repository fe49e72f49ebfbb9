import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@skerry/kit';
import { isItemHash64, LIMITS } from '@skerry/protocol';
import { type Capacity, STAT_BLOCK_BYTES } from '../../host/capacity.ts';
import { machineIdOf } from '../../network/names.ts';
import { sizeIn } from '../../vm/command-line.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import { readProcess, searchQemu } from '../../vm/process.ts';
import { promisedTo } from '../admission.ts';
import { type InstanceRecord, instanceDirectory, listInstanceNames, readRecords } from '../record/record.ts';
import { findVolumes } from './volumes.ts';

/** A file that an instance writes to, and what it was promised for it. */
export interface PromisedFile {
  readonly path: string;
  readonly bytes: number;
  /** As opposed to a volume, whose bytes are the guest's alone. */
  readonly isDisk: boolean;
}

export interface Promisee extends Pick<InstanceRecord, 'id' | 'base' | 'failure' | 'isFound' | 'volumes'> {
  readonly wanted: Capacity;
}

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
/** What a qcow2 header begins with, and where it has the disk's size and the number of snapshots (docs/interop/qcow2.txt of QEMU). */
const QCOW2 = { magic: 0x514649fb, sizeOffset: 24, snapshotsOffset: 60, headBytes: 64 } as const;

/** Its disk and its volumes; files that were fetched are not part of what it was promised. None where it was promised nothing. */
export function promisedFiles(dataDir: string, record: Promisee): PromisedFile[] {
  const { diskGib } = promisedTo(record);
  if (diskGib === 0) return [];
  const volumes = (record.volumes ?? []).filter(({ isReadOnly }) => !isReadOnly);
  const volumesMib = volumes.reduce((sum, { sizeMib }) => sum + sizeMib, 0);
  const rootMib = Math.max(0, diskGib * 1_024 - volumesMib);
  const pathOf = (file: string) => join(instanceDirectory(dataDir, record.id), file);
  return [
    { path: pathOf(MACHINE_FILES.disk), bytes: rootMib * MIB, isDisk: true },
    ...volumes.map(({ file, sizeMib }) => ({ path: pathOf(file), bytes: sizeMib * MIB, isDisk: false })),
  ];
}

export const takenBytes = (path: string): Promise<number> =>
  stat(path).then(
    ({ blocks }) => blocks * STAT_BLOCK_BYTES,
    () => 0,
  );

/** The beginning of a disk's header; undefined where there is none, or it cannot be read: that of one disk keeps nobody from being heard. */
async function readHead(disk: string): Promise<Buffer | undefined> {
  await using file = await open(disk).catch(() => undefined);
  const read = await file?.read(Buffer.alloc(QCOW2.headBytes), 0, QCOW2.headBytes, 0).catch(() => undefined);
  return read?.bytesRead === QCOW2.headBytes ? read.buffer : undefined;
}

export async function hasSnapshots(disk: string): Promise<boolean> {
  const head = await readHead(disk);
  return head !== undefined && head.readUInt32BE(QCOW2.snapshotsOffset) > 0;
}

/** How large its guest sees a disk. Of one whose header cannot be read, what it takes; 0 where there is none. */
async function readDiskBytes(disk: string): Promise<number> {
  const head = await readHead(disk);
  const bytes =
    head?.readUInt32BE() === QCOW2.magic ? Number(head.readBigUInt64BE(QCOW2.sizeOffset)) : undefined;
  return bytes !== undefined && bytes <= LIMITS.instanceDiskGibMax * GIB ? bytes : takenBytes(disk);
}

/**
 * What is known of instances that are here without a record that can be read: how large their disks are, with all files of volumes, and
 * what their machines have where those run. Such a machine goes on, and its owner's data stays, so that nobody else is promised that.
 *
 * @param known instances that are not looked for
 */
export async function readUnrecorded(dataDir: string, known: ReadonlySet<string>): Promise<Promisee[]> {
  const found: Promisee[] = [];
  for (const id of await listUnrecorded(dataDir, known)) found.push(await estimate(dataDir, id));
  return found;
}

/** @param known instances that are not looked for */
export const listUnrecorded = async (dataDir: string, known: ReadonlySet<string>): Promise<string[]> =>
  (await listInstanceNames(dataDir)).filter((name) => isItemHash64(name) && !known.has(name));

/** The same of one instance. */
export async function estimate(dataDir: string, id: string): Promise<Promisee> {
  const directory = instanceDirectory(dataDir, id);
  // What cannot be looked at keeps nobody from being heard.
  const volumes = await findVolumes(directory).catch(() => []);
  const volumesMib = volumes.reduce((sum, { sizeMib }) => sum + sizeMib, 0);
  const diskGib = Math.ceil(
    ((await readDiskBytes(join(directory, MACHINE_FILES.disk))) + volumesMib * MIB) / GIB,
  );
  const pid = await searchQemu(directory, machineIdOf(id));
  const qemu = pid === undefined ? undefined : await readProcess(pid);
  return { id, base: null, failure: null, volumes, wanted: { ...sizeIn(qemu?.args ?? []), diskGib } };
}

/** Everyone whom this node promised a part of itself, as far as it is known. What is wrong with a record is said where there is a log. */
export async function readPromisees(dataDir: string, log?: Logger): Promise<Promisee[]> {
  const records = await readRecords(dataDir, log);
  return [...records, ...(await readUnrecorded(dataDir, new Set(records.map(({ id }) => id))))];
}

/** How many bytes instances have written of what they were promised. What their snapshots keep beside it is not part of that. */
export async function readWritten(dataDir: string, records: readonly Promisee[]): Promise<number> {
  let written = 0;
  for (const { path, bytes } of records.flatMap((record) => promisedFiles(dataDir, record)))
    written += Math.min(bytes, await takenBytes(path));
  return written;
}

/**
 * How many bytes the instances of a node may still write, which nobody else may take for good. A disk that has snapshots may write all
 * of itself once more: those keep what that replaces.
 * @param except the instance whose disk is not counted
 */
export async function readUnwritten(dataDir: string, except?: string): Promise<number> {
  let unwritten = 0;
  for (const record of await readPromisees(dataDir))
    for (const { path, bytes, isDisk } of promisedFiles(dataDir, record)) {
      if (isDisk && record.id === except) continue;
      unwritten +=
        isDisk && (await hasSnapshots(path)) ? bytes : Math.max(0, bytes - (await takenBytes(path)));
    }
  return unwritten;
}
