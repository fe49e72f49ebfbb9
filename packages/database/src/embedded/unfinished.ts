import { chown, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Identity } from './identity.ts';
import type { Layout } from './layout.ts';

const PREFIX = 'new-';

/** A directory to fill and then rename into place. */
export async function createUnfinished(layout: Layout, identity: Identity): Promise<string> {
  const directory = await mkdtemp(join(layout.home, PREFIX));
  await giveTo(directory, identity);
  return directory;
}

/** Removes what a process left that ended before it could rename. The caller holds the lock. */
export async function removeUnfinished(layout: Layout): Promise<void> {
  for (const name of await readdir(layout.home)) {
    if (name.startsWith(PREFIX)) await rm(join(layout.home, name), { recursive: true, force: true });
  }
}

export async function giveTo(path: string, identity: Identity): Promise<void> {
  if (identity.kind === 'user') await chown(path, identity.uid, identity.gid);
}
