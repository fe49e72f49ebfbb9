import { chmod, lchown, lstat, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { renameDurably } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Binaries } from './binaries.ts';
import { commandOf, type Identity, ownerOf } from './identity.ts';
import { fitsSocket, type Layout, shortSocketDirOf } from './layout.ts';
import { type Owner, runProgram } from './program.ts';
import { createUnfinished, giveTo } from './unfinished.ts';

export const SUPERUSER = 'skerry';

/** The major version of the npm packages; a cluster of another one needs its own programs. */
const CLUSTER_VERSION = '18';

/** Other codes come from the loader, or from what runs the program. */
const INITDB_REFUSED = 1;

const INITDB_TIMEOUT_MS = 600_000;

/**
 * UTF-8 with the built-in provider: sorting that no update of libc or ICU can change under an index.
 * Whoever reaches the socket is trusted, and its directory lets nobody else in. Nothing is allowed over TCP.
 */
const INITDB_OPTIONS = [
  `--username=${SUPERUSER}`,
  '--auth-local=trust',
  '--auth-host=reject',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--no-instructions',
];

export async function findCluster(layout: Layout): Promise<Owner | undefined> {
  const entry = await stat(layout.cluster).catch(() => undefined);
  return entry === undefined ? undefined : { uid: entry.uid, gid: entry.gid };
}

/**
 * Makes the cluster in a directory of its own and renames it, so that whatever ends us half way leaves either no
 * cluster or a whole one. The caller holds the lock.
 */
export async function createCluster(
  layout: Layout,
  binaries: Binaries,
  identity: Identity,
  options: { durable: boolean; lockFd: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const partial = await createUnfinished(layout, identity);
  const sync = options.durable ? [] : ['--no-sync'];
  const command = commandOf(identity, 'KILL', [binaries.initdb, ...INITDB_OPTIONS, ...sync, '-D', partial]);
  const { libraryPath } = binaries;
  const result = await runProgram(command, { ...options, libraryPath, timeoutMs: INITDB_TIMEOUT_MS });
  if (result.code !== 0) {
    await rm(partial, { recursive: true, force: true });
    const reason = result.output.trim().split('\n').slice(-3).join(' ');
    const code = result.code === INITDB_REFUSED ? 'DATABASE_UNAVAILABLE' : 'DATABASE_NOT_RUNNABLE';
    throw new AppError(code, `The embedded database could not be created in ${layout.home}: ${reason}`);
  }
  await renameDurably(partial, layout.cluster);
}

/** Throws DATABASE_INCOMPATIBLE for a cluster that another major version made. */
export async function checkClusterVersion(layout: Layout): Promise<void> {
  const file = join(layout.cluster, 'PG_VERSION');
  const version = (await readFile(file, 'utf8').catch(() => 'no known version')).trim();
  if (version === CLUSTER_VERSION) return;
  const message = `The database in ${layout.cluster} is of PostgreSQL ${version}; this release runs ${CLUSTER_VERSION}.`;
  throw new AppError('DATABASE_INCOMPATIBLE', message);
}

/** Hands an existing cluster that belongs to root to the user that runs the server from now on. */
export async function ownCluster(layout: Layout, identity: Identity): Promise<void> {
  const owner = ownerOf(identity);
  const current = await findCluster(layout);
  if (identity.kind !== 'user' || current === undefined || current.uid === owner.uid) return;
  // The cluster's own directory last: its owner says that all of it was handed over.
  const names = await readdir(layout.cluster, { recursive: true });
  for (const name of names) await lchown(join(layout.cluster, name), owner.uid, owner.gid);
  await lchown(layout.cluster, owner.uid, owner.gid);
}

/**
 * An empty private directory for the socket: what an earlier server left in it is stale, since the caller holds the
 * lock. `run` in the cluster's home, or a short path where that is longer than a socket address can hold.
 */
export async function prepareSocketDir(layout: Layout, identity: Identity, port: number): Promise<string> {
  const owner = ownerOf(identity);
  const directory = fitsSocket(layout.run, port) ? layout.run : shortSocketDirOf(layout.home, owner.uid);
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const entry = await lstat(directory);
  const mine = entry.uid === owner.uid || entry.uid === process.geteuid?.();
  if (!entry.isDirectory() || !mine) {
    throw new AppError(
      'DATABASE_UNAVAILABLE',
      `${directory} is needed for the database's socket and belongs to somebody else.`,
    );
  }
  await chmod(directory, 0o700);
  await giveTo(directory, identity);
  for (const name of await readdir(directory)) await rm(join(directory, name), { force: true });
  return directory;
}

/** Makes a private directory that the server's user can work in. */
export async function ensureHome(home: string, identity: Identity): Promise<void> {
  const above = dirname(home);
  if ((await mkdir(above, { recursive: true })) !== undefined) await chmod(above, 0o755);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await chmod(home, 0o700);
  await giveTo(home, identity);
}
