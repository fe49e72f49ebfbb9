import type { Logger } from '../daemon/log.ts';
import { readTextIfAny, renameDurably } from './atomic-file.ts';

/** Behind the name of a file that nobody could read: of several, the last one is kept. */
const ASIDE = '.unreadable';

/** Where a file is that could not be read. */
export const asidePathOf = (path: string): string => `${path}${ASIDE}`;

interface JsonFileOptions<T> {
  /** What the value says; throws where it says nothing that this release understands. */
  readonly parse: (value: unknown) => T;
  /** What becomes of what the file held, for its operator: `the domains are looked up again`. */
  readonly instead: string;
  readonly log: Logger;
}

/**
 * What a file of ours holds; undefined where there is none. One that is empty, damaged or of a newer release is set aside and said so: a
 * service starts without what it can do without. Not for what nobody can find out again, as keys and money.
 */
export async function readJsonOrSetAside<T>(
  path: string,
  { parse, instead, log }: JsonFileOptions<T>,
): Promise<T | undefined> {
  const text = await readTextIfAny(path);
  if (text === undefined) return undefined;
  try {
    return parse(JSON.parse(text));
  } catch (err) {
    const kept = await setAside(path);
    log.error({ err, path, kept }, `a file cannot be read and is set aside; ${instead}`);
    return undefined;
  }
}

/** @returns where it is now: at its place, where it cannot be renamed */
const setAside = (path: string): Promise<string> =>
  renameDurably(path, asidePathOf(path)).then(
    () => asidePathOf(path),
    () => path,
  );
