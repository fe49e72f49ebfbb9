import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { STAT_BLOCK_BYTES } from '../../host/capacity.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import { promisedTo } from '../admission.ts';
import { type InstanceRecord, instanceDirectory, readRecords } from '../record/record.ts';

/** A file that an instance writes to, and what it was promised for it. */
export interface PromisedFile {
  readonly path: string;
  readonly bytes: number;
  /** As opposed to a volume, whose bytes are the guest's alone. */
  readonly isDisk: boolean;
}

export type Promisee = Pick<InstanceRecord, 'id' | 'wanted' | 'base' | 'failure' | 'volumes'>;

const MIB = 1024 ** 2;
/** Where a qcow2 header has the number of snapshots (docs/interop/qcow2.txt of QEMU). */
const SNAPSHOTS_OFFSET = 60;

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

export async function hasSnapshots(disk: string): Promise<boolean> {
  await using file = await open(disk).catch(() => undefined);
  if (!file) return false;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, SNAPSHOTS_OFFSET);
  return bytesRead === 4 && buffer.readUInt32BE() > 0;
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
  for (const record of await readRecords(dataDir))
    for (const { path, bytes, isDisk } of promisedFiles(dataDir, record)) {
      if (isDisk && record.id === except) continue;
      unwritten +=
        isDisk && (await hasSnapshots(path)) ? bytes : Math.max(0, bytes - (await takenBytes(path)));
    }
  return unwritten;
}
