import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@skerry/protocol/forms';
import { type Keeping, LOST_AND_FOUND, mayBe } from '../backup/keeping.ts';
import { isMissing } from '../files/atomic-file.ts';
import { loadOrCreateKeyFile } from '../files/key-file.ts';

/**
 * Makes the key that a service is known by, before anything else in its data directory. Where it is gone from one that the service has
 * worked in, the service would go on as somebody whom nobody knows.
 *
 * @throws AppError INVALID_CONFIG where it is gone, or as `loadOrCreateKeyFile` does
 */
export async function keepOwnKey(
  { identity, entries }: Pick<Keeping<never>, 'identity' | 'entries'>,
  directory: string,
): Promise<void> {
  if (identity === undefined) return;
  const path = join(directory, identity);
  // Looked at before the key: another process that starts here now makes that first.
  const others = entries.filter((entry) => entry.path !== identity);
  const left: string[] = [];
  for (const name of await readdir(directory))
    if (mayBe(others, name) && (await holdsAnything(join(directory, name)))) left.push(name);
  if (left.length > 0 && !existsSync(path))
    throw new AppError(
      'INVALID_CONFIG',
      `${path} is missing, and others know this service by it; ${directory} has ${left.slice(0, NAMED_MAX).join(', ')} of it still. Restore the key from a backup (skerry restore), or give a new service an empty directory`,
      { details: { missing: identity } },
    );
  await loadOrCreateKeyFile(path);
}

/** Of what is left, so many are named. */
const NAMED_MAX = 3;

/** A directory that is empty was made ready by an operator, as a link to another disk, or a disk of its own. */
async function holdsAnything(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTDIR') return undefined;
    if (isMissing(error)) return [];
    throw error;
  });
  return names === undefined || names.some((name) => name !== LOST_AND_FOUND);
}
