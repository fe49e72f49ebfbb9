import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  chmod,
  type FileHandle,
  lchown,
  lstat,
  mkdir,
  open,
  readdir,
  rm,
  rmdir,
  stat,
  statfs,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import {
  type BackupEnd,
  type BackupHead,
  DATA_PREFIX,
  type DatabaseFacts,
  LOST_AND_FOUND,
  makeDirectory,
  RESTORING,
  RUNNING,
  renameDurably,
  replacedName,
  SETTINGS_PREFIX,
  type TarMember,
  takeDataDir,
  VERSION,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { createNoteLog } from '../output/log.ts';
import { renderBytes, renderFields } from '../output/text.ts';
import { openInput } from './input.ts';
import { checkFile, type OpenOptions, openFile } from './inspect.ts';
import { describeNode, type Node, parseRole, type RoleOptions } from './role.ts';

export interface RestoreOptions extends RoleOptions, OpenOptions {
  readonly force?: boolean;
}

/** Kept free beside what is restored. */
const RESERVE_BYTES = 64 * 1024 * 1024;
/** Runs of zeros of this length take no room. */
const SPARSE_BYTES = 64 * 1024;

/** `1.10.0` is newer than `1.9.3`. */
function isNewer(version: string, than: string): boolean {
  const parts = (text: string) => text.split(/[.+-]/).slice(0, 3).map(Number);
  const [mine, other] = [parts(version), parts(than)];
  const at = mine.findIndex((part, index) => part !== other[index]);
  return at >= 0 && mine[at]! > (other[at] ?? 0);
}

/** Throws BACKUP_UNFIT. */
function checkFit({ role, version }: BackupHead, wanted: string | undefined): void {
  if (wanted !== undefined && role !== wanted)
    throw new AppError('BACKUP_UNFIT', `this is the backup of a ${role} and not of a ${wanted}`);
  if (isNewer(version, VERSION))
    throw new AppError(
      'BACKUP_UNFIT',
      `release ${version} made this backup; this is ${VERSION}: restore it with that release or a newer one`,
    );
}

/** The lock that it holds itself, and what the file system made of a disk. */
const NOT_OURS: ReadonlySet<string> = new Set([RUNNING, LOST_AND_FOUND]);

/** What a restore replaces: not what was put aside before. */
const listOwn = async (directory: string) =>
  (await readdir(directory)).filter((name) => !NOT_OURS.has(name) && !name.startsWith('replaced-'));

/** Throws INVALID_PARAMETERS where something cannot be moved aside, before anything is. */
async function refuseDisks(directory: string): Promise<void> {
  const { dev } = await stat(directory);
  for (const name of await listOwn(directory)) {
    const path = join(directory, name);
    if ((await lstat(path)).dev !== dev)
      throw new AppError(
        'INVALID_PARAMETERS',
        `${path} is a disk of its own, which cannot be moved aside: unmount it, restore, and move what belongs there to it`,
      );
  }
}

/** Throws FILE_EXISTS. */
async function refuseOccupied(directory: string): Promise<void> {
  if ((await listOwn(directory)).length > 0)
    throw new AppError(
      'FILE_EXISTS',
      `${directory} is not empty: with --force, what is there is put aside in it`,
    );
}

async function checkRoom(directory: string, { bytes }: BackupEnd): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize >= bytes + RESERVE_BYTES) return;
  throw new AppError(
    'STORAGE_FULL',
    `${directory} has ${renderBytes(bavail * bsize)} free; the backup needs ${renderBytes(bytes + RESERVE_BYTES)}`,
  );
}

/** Moves what is there into a directory of its own; undefined where there is nothing. */
async function putAside(directory: string): Promise<string | undefined> {
  const names = (await listOwn(directory)).filter((name) => name !== RESTORING);
  if (names.length === 0) return undefined;
  const aside = join(directory, replacedName(new Date()));
  await makeDirectory(aside);
  for (const name of names) await renameDurably(join(directory, name), join(aside, name));
  return aside;
}

/** A disk that fills up takes a part; what it says of the rest is its answer. */
async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
}

async function writeSparse(path: string, { content, sizeBytes, mode, mtimeMs }: TarMember): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    let at = 0;
    for await (const part of content) {
      const isHole = part.length >= SPARSE_BYTES && part.every((byte) => byte === 0);
      if (!isHole) await writeAt(file, part, at);
      at += part.length;
    }
    await file.truncate(sizeBytes);
    await file.utimes(new Date(), new Date(mtimeMs));
  } finally {
    await file.close();
  }
  await chmod(path, mode);
}

/** Below the directory that is restored into; undefined for what is not restored. */
function targetOf(path: string): string | undefined {
  if (path.startsWith(DATA_PREFIX)) return path.slice(DATA_PREFIX.length);
  return path.startsWith(SETTINGS_PREFIX) ? path : undefined;
}

async function unpack(context: Context, file: string, options: OpenOptions, into: string): Promise<void> {
  using progress = context.output.progress();
  const { members } = await openFile(file, options);
  let bytes = 0;
  for await (const member of members) {
    const target = targetOf(member.path);
    if (target === undefined) continue;
    const path = join(into, target);
    await mkdir(member.kind === 'directory' ? path : dirname(path), { recursive: true, mode: 0o700 });
    if (member.kind === 'file') await writeSparse(path, member);
    else await chmod(path, member.mode);
    bytes += member.sizeBytes;
    progress.show(`restoring: ${renderBytes(bytes)}`);
  }
}

/** Hands what was restored to whoever the directory belongs to: root may restore for the user of a service. */
async function giveToOwner(into: string, directory: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = await stat(directory);
  if (uid === 0) return;
  for (const name of await readdir(into, { recursive: true })) await lchown(join(into, name), uid, gid);
  await lchown(into, uid, gid);
}

interface Restored {
  readonly role: string;
  readonly directory: string;
  readonly aside: string | undefined;
  readonly done: readonly string[];
}

interface Source {
  readonly node: Node;
  readonly file: string;
  readonly end: BackupEnd;
}

async function settleDatabase({ output }: Context, into: string, told: DatabaseFacts): Promise<string[]> {
  const settle = await import('./settle.ts');
  return settle.settleDatabase(into, told, createNoteLog('restore', 'warn', output));
}

/** Brings all of a backup into an empty directory, fit for a start and safe from a power cut. @returns what was done to it */
async function prepare(
  context: Context,
  { node, file, end }: Source,
  options: OpenOptions,
  into: string,
): Promise<string[]> {
  const { directory, keeping, config } = node;
  await unpack(context, file, options, into);
  // The database runs as who its files belong to, and as root only where user namespaces are allowed.
  await giveToOwner(into, directory);
  const done = [
    ...(end.database === null ? [] : await settleDatabase(context, into, end.database)),
    ...((await keeping.settle?.(into, config, Date.now())) ?? []),
  ];
  await giveToOwner(into, directory);
  await promisify(execFile)('sync', ['--file-system', into]);
  return done;
}

/**
 * Fills a directory that is this process's alone. What is there makes way when all of the backup is beside it. No service starts
 * there from the first change to the last (RESTORING).
 */
async function fill(context: Context, source: Source, options: OpenOptions): Promise<Restored> {
  const { directory, role } = source.node;
  const into = join(directory, RESTORING);
  const isRepeated = existsSync(into);
  // What was not restored to its end is nobody's data.
  if (isRepeated) for (const name of await readdir(into)) await rm(join(into, name), { recursive: true });
  await checkRoom(directory, source.end);
  await makeDirectory(into);
  let done: string[];
  try {
    done = await prepare(context, source, options, into);
  } catch (error) {
    // Nothing of what was there has moved, unless an earlier restore moved it.
    if (!isRepeated) await rm(into, { recursive: true });
    throw error;
  }
  const aside = await putAside(directory);
  for (const name of await readdir(into)) await renameDurably(join(into, name), join(directory, name));
  await rmdir(into);
  return { role, directory, aside, done };
}

function renderRestored({ role, directory, aside, done }: Restored, head: BackupHead): string {
  const settings = join(directory, SETTINGS_PREFIX);
  return renderFields([
    ['restored', `${role}${head.address === null ? '' : ` ${head.address}`} to ${directory}`],
    ['as of', head.made_at],
    ['put aside', aside],
    ...done.map((sentence) => ['done', sentence] as const),
    ...head.absent.map((sentence) => ['not in it', sentence] as const),
    [
      'settings',
      existsSync(settings)
        ? `those of the backup are in ${settings}, for reading; compare them with yours`
        : undefined,
    ],
    ['next', `start the ${role}; it fetches from its peers what is newer`],
  ]);
}

/** Restores a node from its backup: everything is checked before anything is written. */
export async function restore(context: Context, file: string, options: RestoreOptions): Promise<void> {
  const wanted = options.role === undefined ? undefined : parseRole(options.role);
  await using input = await openInput(context, file);
  const { head } = await openHead(input.path, options);
  checkFit(head, wanted);
  const node = await describeNode(context, parseRole(head.role), options);
  const { directory } = node;
  await makeDirectory(directory);
  using _alone = await takeDataDir(directory);
  if (options.force !== true) await refuseOccupied(directory);
  await refuseDisks(directory);
  const { end } = await checkFile(context, input.path, options);
  const restored = await fill(context, { node, file: input.path, end }, options);
  context.output.result({ ...restored, head, end }, renderRestored(restored, head));
}

async function openHead(file: string, options: OpenOptions) {
  const { head, members } = await openFile(file, options);
  await members[Symbol.asyncIterator]().return?.();
  return { head };
}
