import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '@skerry/kit';
import { instancesDirectory } from '../record/record.ts';
import { releasedDirectory } from './released.ts';

/** Names that this node gives to what it has not finished: files and directories that become something by being renamed. */
const DRAFT = /\.tmp$|^disk\.qcow2\.new(\.head)?$|^seed\.iso\.[A-Za-z0-9]{6}$/;

/**
 * Removes what a process that was killed left half done: none of it was ever part of an instance, or is any more. Called before
 * anything else is done with the data directory. Gives the paths.
 */
export async function removeLeftovers(dataDir: string): Promise<string[]> {
  const instances = instancesDirectory(dataDir);
  const directories = [
    dataDir,
    join(dataDir, 'bases'),
    releasedDirectory(dataDir),
    ...(await list(instances)).map((id) => join(instances, id)),
  ];
  const removed: string[] = [];
  for (const directory of directories) {
    for (const name of await list(directory)) {
      if (!DRAFT.test(name)) continue;
      await rm(join(directory, name), { recursive: true, force: true });
      removed.push(join(directory, name));
    }
  }
  return removed;
}

async function list(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
