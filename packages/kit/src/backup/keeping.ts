/** What a name in a service's data directory is to whoever saves and restores it. */
export type KeptKind =
  /** Cannot be made again, and nobody else may see it. */
  | 'secret'
  /** What the service knows; some of it can be learned again. */
  | 'state'
  /** The embedded PostgreSQL, which is copied in its own way. */
  | 'database'
  /** Files of users: much, and found elsewhere on the network as long as somebody else keeps them. */
  | 'files'
  /** Saved and restored for reading only: the service makes it anew. */
  | 'settings'
  /** Not saved: it is made again, or is of a running process, or is told beside the list. */
  | 'passing';

export interface Kept {
  /** Below the data directory; `*` stands for any name. One that ends with a slash is a directory with all in it. */
  readonly path: string;
  readonly kind: KeptKind;
  /** What it is, for people. */
  readonly what: string;
}

/** What a service must not lose: one fact for each role, beside the code that writes the files. */
export interface Keeping<C> {
  /** The first one that fits a path counts. */
  readonly entries: readonly Kept[];
  /** Name of the file whose key the network knows the service by. */
  readonly identity?: string;
  /** Name of the file whose text a service without a key says that it is. */
  readonly idFile?: string;
  /** Files elsewhere that settings name, and that the service cannot do without. */
  readonly elsewhere?: (config: C) => Promise<readonly string[]>;
  /** What a backup does not hold, each a sentence that says how to save it. */
  readonly absent?: (config: C) => readonly string[];
  /** What it keeps free of the disk of its data, of so many bytes. */
  readonly reserveBytes?: (config: C, diskBytes: number) => number;
  /** Makes restored files fit for a start: what happened after the backup must not happen twice. Gives what was done. */
  readonly settle?: (directory: string, config: C, nowMs: number) => Promise<readonly string[]>;
}

/** Names that the restore itself makes in a data directory. */
export const RESTORING = '.restoring';
export const replacedName = (now: Date): string => `replaced-${now.toISOString().replaceAll(/[:.]/g, '-')}`;
/** The lock of a service that works in it. */
export const RUNNING = 'running.lock';
/** Where a data directory is a disk of its own, some file systems have this at its top, for root alone. */
export const LOST_AND_FOUND = 'lost+found';

const COMMON: readonly Kept[] = [
  { path: `${RESTORING}/`, kind: 'passing', what: 'a restore that is not complete' },
  { path: RUNNING, kind: 'passing', what: 'says that a service works here' },
  { path: `${LOST_AND_FOUND}/`, kind: 'passing', what: "the file system's own" },
  { path: '*.draft', kind: 'passing', what: 'a file that is being written' },
  { path: 'replaced-*/', kind: 'passing', what: 'what was here before a restore' },
  { path: 'settings/', kind: 'settings', what: 'the settings that a restored backup was made with' },
];

function fits(pattern: string, path: string): boolean {
  const isTree = pattern.endsWith('/');
  const wanted = (isTree ? pattern.slice(0, -1) : pattern).split('/');
  const given = path.split('/');
  if (isTree ? given.length < wanted.length : given.length !== wanted.length) return false;
  return wanted.every((part, at) => {
    const [head = '', ...tail] = part.split('*');
    const name = given[at]!;
    return tail.length === 0 ? name === part : name.startsWith(head) && name.endsWith(tail.join(''));
  });
}

/** What a path below a data directory is; undefined where the list does not name it. */
export function findKept(entries: readonly Kept[], path: string): Kept | undefined {
  return [...COMMON, ...entries].find((one) => fits(one.path, path));
}

/** Whether a name at the top of a data directory is, or holds, what one of the entries names. */
export const mayBe = (entries: readonly Kept[], name: string): boolean =>
  entries.some(({ path }) => fits(path.split('/')[0]!, name));

/** Whether anything that is wanted may be in a directory, so that it is worth looking into. */
export function mayHold(
  entries: readonly Kept[],
  path: string,
  isWanted: (kind: KeptKind) => boolean,
): boolean {
  const found = findKept(entries, path);
  if (found === undefined || !found.path.endsWith('/') || isWanted(found.kind)) return true;
  return entries.some((one) => one.path.startsWith(`${path}/`) && isWanted(one.kind));
}
