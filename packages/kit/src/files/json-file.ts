import type { Logger } from '../daemon/log.ts';
import { readTextIfAny, renameDurably } from './atomic-file.ts';

/** Behind the name of a file that nobody could read: of several, the last one is kept. */
const ASIDE = '.unreadable';

/** Where a file is that could not be read. */
export const asidePathOf = (path: string): string => `${path}${ASIDE}`;

/** What a process lacks for a while, as room for one more open file: what it could not read then may be whole. */
const LACKS: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);
/** Whoever runs the service has to let it read the file. */
const REFUSALS: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM']);

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException | null)?.code;

/** Whether a file could not be read for want of something that it has no part in. */
export const isLacking = (error: unknown): boolean => LACKS.has(codeOf(error));

/** Whether the process may not read a file, which may be whole. */
export const isForbidden = (error: unknown): boolean => REFUSALS.has(codeOf(error));

interface JsonFileOptions<T> {
  /** What the value says; throws where it says nothing that this release understands. */
  readonly parse: (value: unknown) => T;
  /** What becomes of what the file held, for its operator: `the domains are looked up again`. */
  readonly instead: string;
  readonly log: Logger;
}

/**
 * What a file of ours holds; undefined where there is none. One that is empty, damaged, of a newer release or in a place that the disk
 * cannot read is set aside and said so: a service starts without what it can do without. Not for what nobody can find out again, as keys
 * and money. Throws where the process may not read it, or lacks what reading takes.
 */
export async function readJsonOrSetAside<T>(
  path: string,
  { parse, instead, log }: JsonFileOptions<T>,
): Promise<T | undefined> {
  try {
    const text = await readTextIfAny(path);
    return text === undefined ? undefined : parse(JSON.parse(text));
  } catch (err) {
    if (isLacking(err) || isForbidden(err)) throw err;
    const kept = await setAside(path);
    log.error({ err, path, kept }, `a file cannot be read and is set aside; ${instead}`);
    return undefined;
  }
}

/** Keeps what nobody could read under another name. @returns where it is now: at its place, where it cannot be renamed */
export const setAside = (path: string): Promise<string> =>
  renameDurably(path, asidePathOf(path)).then(
    () => asidePathOf(path),
    () => path,
  );
