import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes a file so that a reader, or the next process after a crash, sees the old text or the new one and nothing between. */
export async function writeFileAtomically(
  path: string,
  data: string | Uint8Array,
  mode = 0o644,
): Promise<void> {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx', mode);
    try {
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory (a rename, a new file) survive a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** The text of a file, or undefined where there is none. */
export async function readTextIfAny(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** The trimmed text of a file; made and written when there is none. */
export async function loadOrCreateText(
  path: string,
  make: () => Promise<string> | string,
  mode = 0o644,
): Promise<string> {
  const kept = await readTextIfAny(path);
  if (kept !== undefined) return kept.trim();
  const made = await make();
  await writeFileAtomically(path, `${made}\n`, mode);
  return made;
}

export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ESRCH';
}
