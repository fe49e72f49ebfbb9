import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '@skerry/kit';
import { instancesDirectory } from '../record/record.ts';
import { releasedDirectory } from './released.ts';

/** Names that this node gives to what it has not finished: files and directories that become something by being renamed. */
const DRAFT = /\.tmp$|^disk\.qcow2\.new(\.head)?$|^seed\.iso\.[A-Za-z0-9]{6}$/;

/** What was removed, and what could not be looked at or removed: one disk's fault keeps no node from starting. */
export interface Leftovers {
  /** Paths. */
  readonly removed: readonly string[];
  /** By path. */
  readonly faults: Readonly<Record<string, string>>;
}

/**
 * Removes what a process that was killed left half done: none of it was ever part of an instance, or is any more. Called before
 * anything else is done with the data directory.
 */
export async function removeLeftovers(dataDir: string): Promise<Leftovers> {
  const removed: string[] = [];
  const faults: Record<string, string> = {};
  const attempt = async <T>(path: string, work: Promise<T>): Promise<T | undefined> =>
    work.catch((error: NodeJS.ErrnoException) => {
      // An operator's own file may lie among the directories.
      if (!isMissing(error) && error.code !== 'ENOTDIR') faults[path] = error.message;
      return undefined;
    });
  const list = async (directory: string) => (await attempt(directory, readdir(directory))) ?? [];
  const instances = instancesDirectory(dataDir);
  const directories = [
    dataDir,
    join(dataDir, 'bases'),
    releasedDirectory(dataDir),
    ...(await list(instances)).map((id) => join(instances, id)),
  ];
  for (const directory of directories)
    for (const name of (await list(directory)).filter((one) => DRAFT.test(one))) {
      const path = join(directory, name);
      await attempt(
        path,
        rm(path, { recursive: true, force: true }).then(() => removed.push(path)),
      );
    }
  return { removed, faults };
}
