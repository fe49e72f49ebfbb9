import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { listCopying } from '../../host/room.ts';
import { hasSnapshots, type Promisee, promisedFiles, takenBytes } from './promised.ts';
import { readMovedBytes } from './released.ts';

/** What snapshots, backups and instances that moved away have of a node's disk beside what instances were promised, in bytes. */
export interface Copies {
  readonly writtenBytes: number;
  /** With what they may still take: a disk that has snapshots may write all of itself once more. */
  readonly bytes: number;
}

async function readSnapshots(dataDir: string, records: readonly Promisee[]): Promise<Copies> {
  let [writtenBytes, bytes] = [0, 0];
  for (const file of records.flatMap((record) => promisedFiles(dataDir, record))) {
    if (!file.isDisk || !(await hasSnapshots(file.path))) continue;
    const taken = await takenBytes(file.path);
    writtenBytes += Math.max(0, taken - file.bytes);
    bytes += taken;
  }
  return { writtenBytes, bytes };
}

/** Those that are there, without those that are being made. */
async function readBackups(dataDir: string): Promise<number> {
  const directory = join(dataDir, 'backups');
  const copying = new Set(listCopying(directory).map(({ path }) => path));
  const list = (path: string) => readdir(path).catch(() => []);
  let bytes = 0;
  for (const instance of await list(directory))
    for (const name of await list(join(directory, instance))) {
      const path = join(directory, instance, name);
      if (!copying.has(path)) bytes += await takenBytes(path);
    }
  return bytes;
}

/**
 * What copies of these instances have, those that are being made, and disks that instances left here.
 *
 * @param except an instance that may come back to the disk that it left
 */
export async function readCopies(
  dataDir: string,
  records: readonly Promisee[],
  except?: string,
): Promise<Copies> {
  const copying = listCopying(dataDir).reduce((sum, one) => sum + one.bytes, 0);
  const snapshots = await readSnapshots(dataDir, records);
  const others = (await readBackups(dataDir)) + (await readMovedBytes(dataDir, except));
  return {
    writtenBytes: snapshots.writtenBytes + others,
    bytes: snapshots.bytes + others + copying,
  };
}
