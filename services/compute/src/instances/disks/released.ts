import { link, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  isMissing,
  type Logger,
  makeDirectory,
  renameDurably,
  syncDirectory,
  writeFileAtomically,
} from '@skerry/kit';
import { fieldsOf, isItemHash64 } from '@skerry/protocol';
import { STAT_BLOCK_BYTES } from '../../host/capacity.ts';
import { isDiskFull } from '../../host/disk-full.ts';
import { eachAlone } from '../../host/each-alone.ts';
import { missingRoom } from '../../host/room.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import {
  type InstanceRecord,
  instanceDirectory,
  instancesDirectory,
  instancesDisk,
  listInstanceNames,
  readRecord,
  readRecordIn,
} from '../record/record.ts';
import { baseOf } from './disks.ts';

/**
 * Why a disk was put aside. `moved`: another node runs the instance; `forgotten`: its owner took it back; `replaced`: its
 * owner had another disk made in its place.
 */
export type ReleaseReason = 'moved' | 'forgotten' | 'replaced';

/** `released.json` beside a disk that was put aside. */
export interface Release {
  readonly id: string;
  readonly why: ReleaseReason;
  readonly owner: string | null;
  /** Milliseconds since 1970, later than that of all that were put aside before. */
  readonly atMs: number;
  /** How long this node has kept it, as far as it ran, in milliseconds; absent until that was counted. */
  readonly keptMs?: number;
  /** The directories below `bases/` that the disk needs. */
  readonly bases: readonly string[];
}

/** How long disks are kept after they were put aside, in milliseconds. */
export type GraceMs = Readonly<Record<ReleaseReason, number>>;

interface Found extends Release {
  readonly directory: string;
}

const NOTE = 'released.json';
const REASONS: readonly string[] = ['moved', 'forgotten', 'replaced'] satisfies ReleaseReason[];
/** The end of the name of what is not put aside yet, or is being erased: the next start removes it (leftovers.ts). */
const DRAFT = '.tmp';
/** The same of what is being erased: where that failed, the next sweep goes on with it. */
const ERASED = `.erased${DRAFT}`;
/** Disks of one instance that its owner had replaced: each may be as large as the instance's. */
const REPLACED_MAX = 3;

export function releasedDirectory(dataDir: string): string {
  return join(dataDir, 'released');
}

const basesOf = ({ base, kernel }: Pick<InstanceRecord, 'base' | 'kernel'>) =>
  [base, kernel].filter((one) => typeof one === 'string');

async function makeRelease(dataDir: string, record: InstanceRecord, why: ReleaseReason, nowMs: number) {
  // Where the clock was set back since, the order is kept all the same.
  const atMs = Math.max(nowMs, ((await listReleased(dataDir)).at(-1)?.atMs ?? 0) + 1);
  const release: Release = {
    id: record.id,
    why,
    owner: record.wanted.owner ?? null,
    atMs,
    bases: basesOf(record),
  };
  await makeDirectory(releasedDirectory(dataDir));
  return { release, directory: join(releasedDirectory(dataDir), `${record.id}-${atMs}`) };
}

/** Throws where it is none: what is erased is erased by what it says. */
function parseNote(value: unknown): Release {
  const { id, why, owner, atMs, keptMs = 0, bases } = fieldsOf(value);
  const isRight =
    isItemHash64(String(id)) &&
    REASONS.includes(String(why)) &&
    (owner === null || typeof owner === 'string') &&
    [atMs, keptMs].every(Number.isFinite) &&
    Array.isArray(bases) &&
    bases.every((base) => typeof base === 'string');
  if (!isRight) throw new Error('it is not the note of a disk that was put aside');
  return value as Release;
}

const writeNote = (directory: string, release: Release) =>
  writeFileAtomically(join(directory, NOTE), `${JSON.stringify(release)}\n`, 0o600);

/** Puts an instance's whole directory aside. It is erased when its grace is over, or when its owner says so. */
export async function putAside(
  dataDir: string,
  record: InstanceRecord,
  why: ReleaseReason,
  nowMs: number,
): Promise<string> {
  const { release, directory } = await makeRelease(dataDir, record, why, nowMs);
  const from = instanceDirectory(dataDir, record.id);
  await writeNote(from, release);
  await renameDurably(from, directory);
  return directory;
}

/**
 * Keeps only the disk of an instance, which goes on with another: the file gets a second name, and the caller replaces it. Nothing is
 * left of what there is no room for.
 */
export async function putDiskAside(dataDir: string, record: InstanceRecord, nowMs: number): Promise<void> {
  const { release, directory } = await makeRelease(dataDir, record, 'replaced', nowMs);
  const draft = `${directory}${DRAFT}`;
  const { disk } = MACHINE_FILES;
  try {
    await mkdir(draft, { mode: 0o700 });
    await writeNote(draft, release);
    await link(join(instanceDirectory(dataDir, record.id), disk), join(draft, disk)).catch((error) => {
      if (!isMissing(error)) throw error;
    });
    await syncDirectory(draft);
    await renameDurably(draft, directory);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  const replaced = (await listReleased(dataDir)).filter(
    ({ id, why }) => id === record.id && why === 'replaced',
  );
  for (const one of replaced.slice(0, -REPLACED_MAX)) await erase(one.directory);
}

/** As a whole, whatever ends the process meanwhile: a disk whose note is gone already would be left alone for ever. */
async function erase(directory: string): Promise<void> {
  const gone = `${directory}${ERASED}`;
  // What an earlier try left.
  await rm(gone, { recursive: true, force: true });
  await renameDurably(directory, gone).catch((error: unknown) => {
    // Somebody else was quicker; or there is no room for the name, which erasing it makes.
    if (!isMissing(error) && !isDiskFull(error)) throw error;
  });
  // What was renamed may not have been made durable: it may have either name.
  for (const one of [gone, directory]) await rm(one, { recursive: true, force: true });
}

/** What is in the directory of all that was put aside, and what of that is being erased. */
async function listNames(dataDir: string): Promise<{ kept: string[]; erased: string[] }> {
  const names = await readdir(releasedDirectory(dataDir)).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  return {
    kept: names.filter((name) => !name.endsWith(DRAFT)),
    erased: names.filter((name) => name.endsWith(ERASED)),
  };
}

async function readReleased(dataDir: string): Promise<{ found: Found[]; isAll: boolean }> {
  const found: Found[] = [];
  let isAll = true;
  for (const name of (await listNames(dataDir)).kept) {
    const directory = join(releasedDirectory(dataDir), name);
    try {
      found.push({ ...parseNote(JSON.parse(await readFile(join(directory, NOTE), 'utf8'))), directory });
    } catch {
      // Of an older version, or damaged: its operator knows what it is.
      isAll = false;
    }
  }
  return { found: found.sort((one, other) => one.atMs - other.atMs), isAll };
}

/** The disks that were put aside; a directory without a readable note is left alone for ever. */
export const listReleased = async (dataDir: string): Promise<Found[]> => (await readReleased(dataDir)).found;

/** Which links of the node's IPv4 the instances had that may come back to their disks, those first that left first. */
export async function listLeftLinks(
  dataDir: string,
): Promise<{ readonly id: string; readonly link: number }[]> {
  const links: { id: string; link: number }[] = [];
  for (const { id, why, directory } of await listReleased(dataDir)) {
    // Its owner may have it erased at this moment.
    const record = why === 'moved' ? await readRecordIn(directory, id).catch(() => undefined) : undefined;
    if (record?.ipv4 && record.base !== null) links.push({ id, link: record.ipv4.link });
  }
  return links;
}

/** Brings an instance back that was here before it moved away, with its disk. Returns whether there was one. */
export async function takeBack(dataDir: string, id: string): Promise<boolean> {
  const last = (await listReleased(dataDir)).findLast((one) => one.id === id && one.why === 'moved');
  if (!last) return false;
  await makeDirectory(instancesDirectory(dataDir));
  const isFree = await renameDurably(last.directory, instanceDirectory(dataDir, id)).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      // Something of this instance is there already, and nobody may write over it.
      if (error.code === 'ENOTEMPTY' || error.code === 'EEXIST') return false;
      throw error;
    },
  );
  if (!isFree) return false;
  await rm(join(instanceDirectory(dataDir, id), NOTE), { force: true });
  return true;
}

/** Erases at once what was put aside of an instance, when its owner asks. Returns how many disks there were. */
export async function eraseReleased(dataDir: string, id: string, owner: string): Promise<number> {
  const own = (await listReleased(dataDir)).filter((one) => one.id === id && one.owner === owner);
  for (const { directory } of own) await erase(directory);
  return own.length;
}

/**
 * Which disks that their owners gave up go where there is no room: of whoever has most, the oldest, one after the other. Pure.
 * @param released the oldest first
 */
export function chooseToErase<T extends Pick<Release, 'owner'> & { readonly takenBytes: number }>(
  released: readonly T[],
  missingBytes: number,
): T[] {
  const byOwner = new Map<string | null, number>();
  const add = (owner: string | null, bytes: number) => byOwner.set(owner, (byOwner.get(owner) ?? 0) + bytes);
  for (const { owner, takenBytes } of released) add(owner, takenBytes);
  const left = new Set(released);
  const chosen: T[] = [];
  for (let missing = missingBytes; missing > 0 && left.size > 0; ) {
    const bytesOf = ({ owner }: T) => byOwner.get(owner)!;
    const one = [...left].reduce((most, next) => (bytesOf(next) > bytesOf(most) ? next : most));
    left.delete(one);
    add(one.owner, -one.takenBytes);
    chosen.push(one);
    missing -= one.takenBytes;
  }
  return chosen;
}

/** 0 where its owner has it erased at this moment. */
async function takenBytesOf(directory: string): Promise<number> {
  const names = await readdir(directory).catch(() => []);
  const blocks = names.map((name) =>
    stat(join(directory, name)).then(
      (found) => found.blocks,
      () => 0,
    ),
  );
  return (await Promise.all(blocks)).reduce((sum, count) => sum + count * STAT_BLOCK_BYTES, 0);
}

/**
 * How many bytes disks have whose instances moved away. The others go where room is missing.
 *
 * @param except the instance whose disks are not counted
 */
export async function readMovedBytes(dataDir: string, except?: string): Promise<number> {
  const moved = (await listReleased(dataDir)).filter(({ id, why }) => why === 'moved' && id !== except);
  const taken = await Promise.all(moved.map(({ directory }) => takenBytesOf(directory)));
  return taken.reduce((sum, bytes) => sum + bytes, 0);
}

/** Erases disks that their owners gave up where the disk has less than its reserve: machines that run come before them. */
export async function eraseForRoom(dataDir: string, log: Logger): Promise<void> {
  const missingBytes = await missingRoom(await instancesDisk(dataDir));
  if (missingBytes === 0) return;
  const givenUp = (await listReleased(dataDir)).filter(({ why }) => why !== 'moved');
  const released = await Promise.all(
    givenUp.map(async (one) => ({ ...one, takenBytes: await takenBytesOf(one.directory) })),
  );
  await eachAlone(chooseToErase(released, missingBytes), async ({ id, why, directory }) => {
    await erase(directory);
    log.warn({ instance: id, why }, "erasing a disk that was set aside: this node's disk is full");
  });
}

/** Its owner may have it erased or take it back at this moment; where the disk is full, it is kept for longer. */
async function noteKept({ directory, ...release }: Found, keptMs: number): Promise<void> {
  await writeNote(directory, { ...release, keptMs }).catch((error: unknown) => {
    if (!isMissing(error) && !isDiskFull(error)) throw error;
  });
}

/**
 * Erases disks whose grace is over, then images that no disk of this node needs any more.
 * @param elapsedMs how long the node ran since the last time: a date is only as right as the clock was
 */
export async function sweepReleased(
  dataDir: string,
  grace: GraceMs,
  { elapsedMs, nowMs }: { readonly elapsedMs: number; readonly nowMs: number },
  log: Logger,
): Promise<void> {
  const sweepOne = async (one: Found) => {
    const keptMs = (one.keptMs ?? 0) + elapsedMs;
    if (keptMs < grace[one.why]) return noteKept(one, keptMs);
    await erase(one.directory);
    log.info({ instance: one.id, why: one.why }, 'erasing a disk whose grace period has ended');
  };
  const sweepErased = async () => {
    const { erased } = await listNames(dataDir);
    const remove = (name: string) =>
      rm(join(releasedDirectory(dataDir), name), { recursive: true, force: true });
    await eachAlone(erased, remove);
  };
  const sweepAll = async () => eachAlone(await listReleased(dataDir), sweepOne);
  const sweepUnneeded = async () => {
    const needed = await readNeeded(dataDir);
    if (needed) await sweepBases(dataDir, needed, nowMs);
  };
  await eachAlone([sweepErased, sweepAll, sweepUnneeded], (sweep) => sweep());
}

/**
 * Which bases disks of this node need, by what is on its disk: a process that could not resume its instances holds none of them.
 * Undefined where nobody knows: of a disk without a readable record or note.
 */
async function readNeeded(dataDir: string): Promise<ReadonlySet<string> | undefined> {
  const released = async () => {
    const { found, isAll } = await readReleased(dataDir);
    return isAll ? readReleasedBases(dataDir, found) : undefined;
  };
  const needed = new Set<string>();
  // Twice, before and after: a disk that is put aside or taken back meanwhile is in one of the three.
  for (const read of [released, () => readBases(dataDir), released]) {
    const bases = await read();
    if (!bases) return undefined;
    for (const one of bases) needed.add(one);
  }
  return needed;
}

/** Those of disks that were put aside. */
async function readReleasedBases(dataDir: string, found: readonly Found[]): Promise<string[] | undefined> {
  const bases: string[] = [];
  for (const { directory, bases: noted } of found) {
    bases.push(...noted);
    if (noted.length > 0 || !(await hasDisk(directory))) continue;
    const base = await askBase(dataDir, directory);
    if (base === undefined) return undefined;
    bases.push(base);
  }
  return bases;
}

/** Those of the disks of instances. */
async function readBases(dataDir: string): Promise<string[] | undefined> {
  const bases: string[] = [];
  for (const name of await listInstanceNames(dataDir)) {
    const directory = instanceDirectory(dataDir, name);
    // That one cannot be read was said when the node started.
    const record = await readRecord(dataDir, name).catch(() => undefined);
    if (record) bases.push(...basesOf(record));
    if (record?.base || !(await hasDisk(directory))) continue;
    // One whose making was cut off before it was noted says it itself. Its kernel is looked for anew.
    const base = record && (await askBase(dataDir, directory));
    if (base === undefined) return undefined;
    bases.push(base);
  }
  return bases;
}

/** Undefined where it builds on none of this node's, or it cannot be asked. */
const askBase = (dataDir: string, directory: string): Promise<string | undefined> =>
  baseOf(dataDir, join(directory, MACHINE_FILES.disk)).catch(() => undefined);

/** Whether an instance's directory has a disk, or may have one: nobody knows where it cannot be read. */
export const hasDisk = (directory: string): Promise<boolean> =>
  stat(join(directory, MACHINE_FILES.disk)).then(
    () => true,
    (error: NodeJS.ErrnoException) => !isMissing(error) && error.code !== 'ENOTDIR',
  );

/** A base that was made a moment ago may be of an instance that has not noted it yet. */
const BASE_AGE_MS = 24 * 3_600_000;

async function sweepBases(dataDir: string, needed: ReadonlySet<string>, nowMs: number): Promise<void> {
  for (const name of await readdir(join(dataDir, 'bases')).catch(() => [])) {
    const path = join(dataDir, 'bases', name);
    if (needed.has(join('bases', name)) || nowMs - (await stat(path)).ctimeMs < BASE_AGE_MS) continue;
    await rm(path, { recursive: true, force: true });
  }
}
