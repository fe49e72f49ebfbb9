import { mkdir, realpath, rm, statfs } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import type { Lock, Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { decideLogBytes, mibOf } from '../disk/disk-sizes.ts';
import { type Binaries, checkRunnable, copyPackage, findPackageDir, prepareBinaries } from './binaries.ts';
import {
  checkClusterVersion,
  createCluster,
  ensureHome,
  findCluster,
  ownCluster,
  prepareSocketDir,
  SUPERUSER,
} from './cluster.ts';
import { decideIdentity, findUserNamespaces, type Identity, isReachable, ownerOf } from './identity.ts';
import { type Layout, layoutOf, SOCKET_PORT, SYSTEM_DIR, systemHomeOf } from './layout.ts';
import { findLeftover } from './leftover.ts';
import { type Connection, startServer } from './server.ts';
import { decideSettings, type ServerSettings } from './settings.ts';
import { superviseServer } from './supervisor.ts';
import { takeOver } from './takeover.ts';
import { removeUnfinished } from './unfinished.ts';

export interface EmbeddedPostgresOptions {
  /** A directory for the database alone; made if it is not there. */
  readonly dataDir: string;
  readonly log: Logger;
  /** Ends the start, not the running server: dispose of that. */
  readonly signal?: AbortSignal | undefined;
  /** Added to, or instead of, the server's own settings. */
  readonly settings?: ServerSettings | undefined;
  /** Directory of the npm package with the programs; found by itself where this is absent. */
  readonly packageDir?: string | undefined;
  readonly systemDir?: string | undefined;
  /** How long a supervisor that lives is waited for; a moment where this is absent. */
  readonly patienceMs?: number | undefined;
  /** False: as on a machine that refuses user namespaces. Asked of the machine where this is absent. */
  readonly userNamespaces?: boolean | undefined;
}

export interface EmbeddedPostgres extends AsyncDisposable {
  /** For a pg client. The database is there but may be empty of tables. */
  readonly connection: Connection;
  /** Where its files are. */
  readonly directory: string;
  /** Of the server's first process. Another one after a restart. */
  readonly pid: number;
}

/** The database that every cluster comes with; the readiness probe and tests that create databases go there. */
export const MAINTENANCE_DATABASE = 'postgres';

/**
 * Runs the real PostgreSQL of the npm packages on `dataDir` and keeps it running until disposal. Its only door is a
 * Unix socket in a private directory. It stops cleanly by itself when our process ends, by a kill -9 too.
 *
 * One supervisor owns a data directory at a time. A second one waits for a moment (the first may be on its way out)
 * and then throws DATABASE_IN_USE. Throws DATABASE_NOT_RUNNABLE where the programs are missing or cannot run,
 * DATABASE_INCOMPATIBLE for a cluster of another major version, DATABASE_UNAVAILABLE if the server does not start.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const packageDir = await realpath(options.packageDir ?? findPackageDir());
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = await realpath(options.dataDir);
  const homes = homesOf(dataDir, options.systemDir);
  const lock = await takeOver(join(dataDir, 'lock'), homes, options);
  try {
    return await startLocked({ ...options, packageDir, homes, lock });
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/**
 * The data directory's own layout, and the one to use where that cannot be reached.
 * @param dataDir as realpath gives it
 */
export function homesOf(dataDir: string, systemDir: string = SYSTEM_DIR): readonly [Layout, Layout] {
  return [layoutOf(dataDir), layoutOf(systemHomeOf(dataDir, systemDir))];
}

interface LockedOptions extends EmbeddedPostgresOptions {
  readonly packageDir: string;
  readonly homes: ReturnType<typeof homesOf>;
  readonly lock: Lock;
}

async function startLocked(options: LockedOptions): Promise<EmbeddedPostgres> {
  const { log, lock, signal } = options;
  const { layout, identity } = await findPlace(options.homes, options);
  await checkPlace(layout, identity);
  await ensureHome(layout.home, identity);
  await removeUnfinished(layout);
  const binaries = await prepareFor(identity, layout, options.packageDir);
  await checkRunnable(binaries, identity, signal);
  await ensureCluster(layout, binaries, identity, options);
  const port = Number(options.settings?.port ?? SOCKET_PORT);
  const socketDir = await prepareSocketDir(layout, identity, port);
  const disk = await measure(layout.cluster);
  warnOfFullDisk(log, layout.cluster, disk);
  const settings = {
    ...decideSettings(totalmem() / 2 ** 20, socketDir, mibOf(decideLogBytes(disk.sizeBytes))),
    port: String(port),
    ...options.settings,
  };
  const connection = { host: socketDir, port, user: SUPERUSER, database: MAINTENANCE_DATABASE };
  const plan = { binaries, identity, cluster: layout.cluster, settings, connection, lockFd: lock.fd, log };
  const start = (starting?: AbortSignal) =>
    startServer(plan, starting).catch(async (error: unknown) => {
      // Who ended the start is told so, whatever room there is.
      throw starting?.aborted ? error : await asFullDisk(error, layout.cluster);
    });
  const supervisor = await superviseServer(start, { log, signal });
  log.info(
    { pid: supervisor.pid, cluster: layout.cluster, runs: identity.kind },
    'the embedded database is ready',
  );
  return {
    connection,
    directory: layout.cluster,
    get pid() {
      return supervisor.pid;
    },
    async [Symbol.asyncDispose]() {
      await supervisor.stop();
      await rm(socketDir, { recursive: true, force: true });
      lock[Symbol.dispose]();
    },
  };
}

interface DiskSize {
  readonly freeBytes: number;
  readonly sizeBytes: number;
}

async function measure(directory: string): Promise<DiskSize> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
}

/** Recovery after a crash writes as much as the log holds, before any of it can be let go. */
const isTight = ({ freeBytes, sizeBytes }: DiskSize) => freeBytes < decideLogBytes(sizeBytes);

function warnOfFullDisk(log: Logger, cluster: string, disk: DiskSize): void {
  if (!isTight(disk)) return;
  const fields = {
    cluster,
    free_mib: mibOf(disk.freeBytes),
    wanted_mib: mibOf(decideLogBytes(disk.sizeBytes)),
  };
  log.warn(fields, 'the disk of the embedded database is nearly full; if it does not start, free some space');
}

/**
 * A server that does not start on a full disk says many things; what helps is said first. Of a disk that is gone, the server's own words
 * say more than that it cannot be measured.
 */
async function asFullDisk(error: unknown, cluster: string): Promise<unknown> {
  const disk = await measure(cluster).catch(() => undefined);
  if (disk === undefined || !isTight(disk)) return error;
  const { message } = error as Error;
  return new AppError(
    'STORAGE_FULL',
    `The embedded database did not start, and only ${mibOf(disk.freeBytes)} MiB of the disk of ${cluster} are free: make ${mibOf(decideLogBytes(disk.sizeBytes))} MiB of room. ${message}`,
    { cause: error },
  );
}

/** An existing cluster stays where it is and with the user it belongs to; a new one goes to a place that its user can reach. */
export async function findPlace(
  [own, system]: ReturnType<typeof homesOf>,
  options: Pick<EmbeddedPostgresOptions, 'userNamespaces'>,
): Promise<{ layout: Layout; identity: Identity }> {
  const isRoot = process.geteuid?.() === 0;
  const existing =
    (await findCluster(own)) !== undefined
      ? own
      : (await findCluster(system)) !== undefined
        ? system
        : undefined;
  const identity = decideIdentity({
    euid: process.geteuid?.() ?? 0,
    clusterOwner: existing === undefined ? undefined : await findCluster(existing),
    userNamespaces: isRoot && (options.userNamespaces ?? (await findUserNamespaces())),
  });
  if (existing !== undefined) return { layout: existing, identity };
  return { layout: !isRoot || (await isPlaceReachable(own, identity)) ? own : system, identity };
}

/** The home itself is made to belong to the server's user; what counts are the directories above it. */
async function isPlaceReachable(layout: Layout, identity: Identity): Promise<boolean> {
  return isReachable(join(layout.home, '..'), ownerOf(identity));
}

/** Before an existing cluster is handed over. Throws DATABASE_NOT_RUNNABLE where whoever is to run its server cannot reach it. */
async function checkPlace(layout: Layout, identity: Identity): Promise<void> {
  if (identity.kind !== 'user' || (await findCluster(layout)) === undefined) return;
  if (await isPlaceReachable(layout, identity)) return;
  throw new AppError(
    'DATABASE_NOT_RUNNABLE',
    `PostgreSQL does not run as root, and user ${identity.uid} cannot reach ${layout.home}: give the data directory of the node to another user (chown) for whom the directories above it are open, or allow user namespaces`,
  );
}

async function prepareFor(identity: Identity, layout: Layout, packageDir: string): Promise<Binaries> {
  const reachable = identity.kind === 'self' || (await isReachable(packageDir, ownerOf(identity)));
  return prepareBinaries(
    reachable ? packageDir : await copyPackage(packageDir, layout, identity),
    layout.lib,
  );
}

async function ensureCluster(
  layout: Layout,
  binaries: Binaries,
  identity: Identity,
  options: LockedOptions,
): Promise<void> {
  if ((await findCluster(layout)) === undefined) {
    options.log.info({ cluster: layout.cluster }, 'creating the embedded database');
    const durable = options.settings?.fsync !== 'off';
    await createCluster(layout, binaries, identity, {
      durable,
      lockFd: options.lock.fd,
      signal: options.signal,
    });
    return;
  }
  await checkClusterVersion(layout);
  await ownCluster(layout, identity);
  const leftover = await findLeftover(layout.cluster);
  if (leftover.kind === 'running') {
    // It does not hold our lock, so somebody started it without us, and only they may end it.
    const message = `A PostgreSQL server that Skerry did not start (process ${leftover.pid}) works in ${layout.cluster}: stop it first.`;
    throw new AppError('DATABASE_IN_USE', message);
  }
  // PostgreSQL itself would refuse to start if the pid is now another process's.
  if (leftover.kind === 'stale') await rm(join(layout.cluster, 'postmaster.pid'), { force: true });
}
