import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, lchown, mkdir, open, readdir, rm, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import {
  type BackupEnd,
  type BackupHead,
  DATA_PREFIX,
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

/** What a restore puts aside: all but the lock that it holds itself. */
const listOwn = async (directory: string) =>
  (await readdir(directory)).filter((name) => name !== RUNNING && !name.startsWith('replaced-'));

async function checkRoom(directory: string, { bytes }: BackupEnd): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize >= bytes + RESERVE_BYTES) return;
  throw new AppError(
    'STORAGE_FULL',
    `${directory} has ${renderBytes(bavail * bsize)} free; the backup needs ${renderBytes(bytes + RESERVE_BYTES)}`,
  );
}

/** Throws FILE_EXISTS unless it may be put aside. */
async function putAside(directory: string, force: boolean): Promise<string | undefined> {
  const names = await listOwn(directory);
  if (names.length === 0) return undefined;
  if (!force)
    throw new AppError(
      'FILE_EXISTS',
      `${directory} is not empty: with --force, what is there is put aside in it`,
    );
  // What was not restored to its end is nobody's data.
  await rm(join(directory, RESTORING), { recursive: true, force: true });
  const aside = join(directory, replacedName(new Date()));
  await makeDirectory(aside);
  for (const name of names)
    if (name !== RESTORING) await renameDurably(join(directory, name), join(aside, name));
  return aside;
}

async function writeSparse(path: string, { content, sizeBytes, mode, mtimeMs }: TarMember): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    let at = 0;
    for await (const part of content) {
      const isHole = part.length >= SPARSE_BYTES && part.every((byte) => byte === 0);
      if (!isHole) await file.write(part, 0, part.length, at);
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

/** Hands all below a directory to whoever the directory belongs to: root may restore for the user of a service. */
async function giveToOwner(directory: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = await stat(directory);
  if (uid === 0) return;
  for (const name of await readdir(directory, { recursive: true })) {
    if (!name.startsWith('replaced-')) await lchown(join(directory, name), uid, gid);
  }
}

interface Restored {
  readonly role: string;
  readonly directory: string;
  readonly aside: string | undefined;
  readonly done: readonly string[];
}

/** Fills a directory that is this process's alone. */
async function fill(
  context: Context,
  file: string,
  options: RestoreOptions,
  { node, end }: { readonly node: Node; readonly end: BackupEnd },
): Promise<Restored> {
  const { directory, keeping, config, role } = node;
  const aside = await putAside(directory, options.force === true);
  const into = join(directory, RESTORING);
  await makeDirectory(into);
  await unpack(context, file, options, into);
  const done = [
    ...(end.database === null ? [] : await (await import('./settle.ts')).settleDatabase(into, end.database)),
    ...((await keeping.settle?.(into, config, Date.now())) ?? []),
  ];
  await giveToOwner(directory);
  // Everything of it is on the disk before any of it counts.
  await promisify(execFile)('sync', ['--file-system', into]);
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
  await using input = await openInput(context, file);
  const { head } = await openHead(input.path, options);
  checkFit(head, options.role);
  const node = await describeNode(context, parseRole(head.role), options);
  const { directory } = node;
  await makeDirectory(directory);
  using _alone = await takeDataDir(directory);
  if (options.force !== true && (await listOwn(directory)).length > 0) await putAside(directory, false);
  const { end } = await checkFile(context, input.path, options);
  await checkRoom(directory, end);
  const restored = await fill(context, input.path, options, { node, end });
  context.output.result({ ...restored, head, end }, renderRestored(restored, head));
}

async function openHead(file: string, options: OpenOptions) {
  const { head, members } = await openFile(file, options);
  await members[Symbol.asyncIterator]().return?.();
  return { head };
}
