import type { Stats } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { EMBEDDED_DATABASE, hasCluster, openCluster, readCluster } from '@skerry/database';
import {
  type BackupMember,
  DATA_PREFIX,
  type DatabaseFacts,
  findKept,
  isMissing,
  type Kept,
  type KeptKind,
  type Logger,
  mayHold,
  SETTINGS_PREFIX,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import { DATABASE_DIRECTORY, type Node } from './role.ts';

const READ_BYTES = 1024 * 1024;
const SETTINGS_FILE = 'settings.env';
const CLUSTER_PREFIX = `${DATA_PREFIX}${DATABASE_DIRECTORY}/cluster/`;

export interface MembersOptions {
  readonly withFiles: boolean;
  /** Of a database server that is started for the backup. */
  readonly log: Logger;
  /** Told of the database as the copy has it. */
  readonly onDatabase: (facts: DatabaseFacts) => void;
}

/** What is to be saved, small and secret things first. Files of users come after the database that names them. */
export async function* listMembers(node: Node, options: MembersOptions): AsyncGenerator<BackupMember> {
  const { directory, keeping } = node;
  yield* settingsOf(node);
  yield* walk(directory, keeping.entries, (kind) => kind === 'secret' || kind === 'state');
  if (await hasDatabase(node)) yield* databaseOf(directory, options);
  if (options.withFiles) yield* walk(directory, keeping.entries, (kind) => kind === 'files');
}

/** Whether there is an embedded database to save. */
export async function hasDatabase({ keeping, config, directory }: Node): Promise<boolean> {
  if (config.databaseUrl !== undefined || !keeping.entries.some(({ kind }) => kind === 'database'))
    return false;
  return hasCluster(join(directory, DATABASE_DIRECTORY));
}

async function* settingsOf({ variables, keeping, config }: Node): AsyncGenerator<BackupMember> {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${JSON.stringify(value)}\n`);
  if (lines.length > 0) yield textMember(`${SETTINGS_PREFIX}${SETTINGS_FILE}`, lines.join(''));
  const paths = new Set(await keeping.elsewhere?.(config));
  const names = new Map<string, number>([[SETTINGS_FILE, 1]]);
  for (const path of paths) {
    const name = basename(path);
    const count = (names.get(name) ?? 0) + 1;
    names.set(name, count);
    const member = await fileMember(path, `${SETTINGS_PREFIX}${name}${count > 1 ? `-${count}` : ''}`);
    if (!member) throw new AppError('INVALID_CONFIG', `${path} is named in the settings and is not there`);
    yield member;
  }
}

async function* databaseOf(
  directory: string,
  { log, onDatabase }: MembersOptions,
): AsyncGenerator<BackupMember> {
  const { describeDatabase } = await import('./settle.ts');
  await using cluster = await openCluster({ dataDir: join(directory, DATABASE_DIRECTORY), log });
  const connection = { ...cluster.connection, database: EMBEDDED_DATABASE, ssl: false };
  const files = readCluster(cluster, async () => onDatabase(await describeDatabase(connection)));
  for await (const file of files) yield { ...file, path: `${CLUSTER_PREFIX}${file.path}` };
}

/** Files below a directory of the kinds that are wanted. What no list names is kept as if it were state. */
async function* walk(
  root: string,
  entries: readonly Kept[],
  isWanted: (kind: KeptKind) => boolean,
  below = '',
): AsyncGenerator<BackupMember> {
  for (const entry of await listEntries(join(root, below))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    const isKept = () => isWanted(findKept(entries, path)?.kind ?? 'state');
    // At the top an operator puts what is large on another disk; further down, links may be a stranger's.
    const isLed = below === '' && entry.isSymbolicLink() && isKept();
    const found = isLed ? await followLink(join(root, path)) : entry;
    if (found.isDirectory()) {
      if (mayHold(entries, path, isWanted)) yield* walk(root, entries, isWanted, path);
    } else if (found.isFile() && isKept()) {
      const member = await fileMember(join(root, path), `${DATA_PREFIX}${path}`);
      if (member) yield member;
    }
  }
}

/** What a link leads to. Throws INVALID_CONFIG where that is nothing: a backup would lack it without a word. */
async function followLink(path: string): Promise<Stats> {
  try {
    return await stat(path);
  } catch (cause) {
    throw new AppError('INVALID_CONFIG', `${path} is a link that leads to nothing: is its disk mounted?`, {
      cause,
    });
  }
}

async function listEntries(directory: string) {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    // Removed since its name was read.
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Undefined where it was removed since its name was read. */
async function fileMember(source: string, path: string): Promise<BackupMember | undefined> {
  const file = await open(source, 'r').catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  const { mode, size, mtimeMs } = await file.stat();
  async function* content() {
    try {
      for (let at = 0; at < size; ) {
        const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, size - at));
        const { bytesRead } = await file!.read(buffer, 0, buffer.length, at);
        if (bytesRead === 0)
          throw new AppError('INTERNAL', `${source} became shorter while it was read: make the backup again`);
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file!.close();
    }
  }
  return { path, kind: 'file', mode: mode & 0o777, sizeBytes: size, mtimeMs, content };
}

function textMember(path: string, text: string): BackupMember {
  const bytes = Buffer.from(text);
  return {
    ...{ path, kind: 'file', mode: 0o600, sizeBytes: bytes.length, mtimeMs: Date.now() },
    content: async function* () {
      yield bytes;
    },
  };
}
