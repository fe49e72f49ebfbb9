import { link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AppError } from '@skerry/protocol/forms';

/** Of a file that is not complete: beside the one that it is to become, so that a rename is enough. */
const DRAFT = /\.[0-9a-f]{12}\.draft$/;
/** No write takes so long: what is older was left by a process that was killed. */
const DRAFT_AGE_MS_MAX = 3_600_000;

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

/** Whether an error says that there is no such file or directory. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
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

/** Makes the content of a file, or the names in a directory (a new file, a rename), survive a power cut. */
async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes the names in a directory survive a power cut: of files that are new in it, renamed or removed. */
export const syncDirectory = (path: string): Promise<void> => sync(path);

/** Makes the content of a file survive a power cut that a program of somebody else's wrote. */
export const syncFile = (path: string): Promise<void> => sync(path);

/** What no later try cures: the path leads through a file, or to where nobody, or not this user, makes directories. */
const UNMAKEABLE = ['ENOTDIR', 'EEXIST', 'ENOENT', 'EACCES', 'EPERM', 'EROFS'];

/** The directory and those above it that are missing, the topmost first. */
async function findMissing(path: string): Promise<string[]> {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    const found = await stat(at).catch((error: NodeJS.ErrnoException) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (found?.isDirectory()) return missing.toReversed();
    if (found) throw Object.assign(new Error(`${at} is not a directory`), { code: 'ENOTDIR' });
    missing.push(at);
  }
}

/**
 * Makes a directory and those above it where they are missing, and their names survive a power cut. One after the other: Node's
 * own recursion never ends below /proc. Throws INVALID_CONFIG where it cannot be made.
 */
export async function makeDirectory(path: string, mode = 0o700): Promise<void> {
  const whole = resolve(path);
  try {
    for (const one of await findMissing(whole)) {
      await mkdir(one, { mode }).catch((error: NodeJS.ErrnoException) => {
        // Somebody else made it meanwhile.
        if (error.code !== 'EEXIST') throw error;
      });
      await syncDirectory(dirname(one));
    }
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (!UNMAKEABLE.includes(code)) throw error;
    throw new AppError('INVALID_CONFIG', `the directory ${whole} cannot be made: ${message}`, {
      cause: error,
    });
  }
}

/** Gives a file or directory another name on the same file system; when it resolves the name survives a power cut. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncDirectory(dirname(to));
  if (resolve(dirname(from)) !== resolve(dirname(to))) await syncDirectory(dirname(from));
}

/** Directories that this process looked through for what others left. */
const tidied = new Set<string>();

/** A process that is killed half-way leaves its draft; the next one that writes there removes it. */
async function tidy(directory: string): Promise<void> {
  if (tidied.has(directory)) return;
  tidied.add(directory);
  for (const name of await readdir(directory)) {
    if (!DRAFT.test(name)) continue;
    const path = join(directory, name);
    const found = await stat(path).catch(() => undefined);
    if (found && Date.now() - found.mtimeMs > DRAFT_AGE_MS_MAX) await rm(path, { force: true });
  }
}

/** Writes all of a file under a name of its own, syncs it, and lets `publish` give it the name that it is for. */
async function writeDraft(
  path: string,
  data: string | Uint8Array,
  mode: number,
  publish: (draft: string) => Promise<void>,
): Promise<void> {
  const directory = dirname(resolve(path));
  await tidy(directory);
  // Loaded with the first file: most commands write none.
  const { randomBytes } = process.getBuiltinModule('node:crypto');
  const draft = join(directory, `${basename(path)}.${randomBytes(6).toString('hex')}.draft`);
  try {
    const file = await open(draft, 'wx', mode);
    try {
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await publish(draft);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * Writes a file, or another in its place: whoever reads it, also the next process after a kill or a power cut, finds the old
 * content or the new one and nothing between. When it resolves, the new one survives a power cut.
 */
export function writeFileAtomically(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  return writeDraft(path, data, mode, (draft) => renameDurably(draft, path));
}

/**
 * Writes a file where there is none, as `writeFileAtomically` does.
 * @returns false where there is one already; it stays as it is
 */
export async function createFileAtomically(
  path: string,
  data: string | Uint8Array,
  mode: number,
): Promise<boolean> {
  let isNew = true;
  await writeDraft(path, data, mode, async (draft) => {
    try {
      // Unlike a rename, a link never replaces what another process made meanwhile.
      await link(draft, path);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      isNew = false;
    }
    await rm(draft);
    // Also of a file of another process, which may not have come so far: its content is about to be relied on.
    await syncDirectory(dirname(path));
  });
  return isNew;
}

/** The trimmed text of a file; made and written where there is none. Of processes that do so at once, all get the same. */
export async function loadOrCreateText(
  path: string,
  make: () => Promise<string> | string,
  mode: number,
): Promise<string> {
  const kept = await readTextIfAny(path);
  if (kept !== undefined) return kept.trim();
  await createFileAtomically(path, `${await make()}\n`, mode);
  return (await readFile(path, 'utf8')).trim();
}
