import { realpath } from 'node:fs/promises';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { findCluster, SUPERUSER } from '../embedded/cluster.ts';
import { fitsSocket, type Layout, SOCKET_PORT, shortSocketDirOf } from '../embedded/layout.ts';
import { homesOf, MAINTENANCE_DATABASE, startEmbeddedPostgres } from '../embedded/postgres.ts';
import type { Connection } from '../embedded/server.ts';
import { withClient } from '../reach.ts';

/** A cluster, and a server that answers for it. */
export interface OpenCluster extends AsyncDisposable {
  readonly connection: Connection;
  readonly directory: string;
}

interface ClusterOptions {
  /** The directory that was given to the embedded database. */
  readonly dataDir: string;
  readonly log: Logger;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The cluster of a directory with the server that serves it now; where none does, one is started until disposal.
 * Throws DATABASE_UNAVAILABLE where a process has the cluster and nothing answers, and what startEmbeddedPostgres throws.
 */
export async function openCluster(options: ClusterOptions): Promise<OpenCluster> {
  const { dataDir } = options;
  return (await findRunning(dataDir)) ?? (await startEmbeddedPostgres(options).catch(rethrowFor(dataDir)));
}

/** Who only reads a cluster is not to stop the node that has it, nor to give it another directory. */
const rethrowFor = (dataDir: string) => (error: unknown) => {
  const isHeld = error instanceof AppError && error.code === 'DATABASE_IN_USE' && isOfLock(error);
  if (!isHeld) throw error;
  throw new AppError(
    'DATABASE_UNAVAILABLE',
    `The database in ${dataDir} does not answer, and the process that runs it has not ended: it may be starting, stopped (SIGSTOP) or overloaded. See the log of its node, and try again when it answers.`,
    { cause: error },
  );
};

/** A server that somebody started by hand has no lock, and is theirs to end. */
const isOfLock = ({ details }: AppError) => (details as { lock?: string } | undefined)?.lock !== undefined;

/** Whether a directory has a cluster: that of a disk which is not mounted is there, and empty. */
export async function hasCluster(dataDir: string): Promise<boolean> {
  const directory = await realpath(dataDir).catch(() => undefined);
  if (directory === undefined) return false;
  const found = await Promise.all((await homesOf(directory)).map(findCluster));
  return found.some((owner) => owner !== undefined);
}

async function findRunning(dataDir: string): Promise<OpenCluster | undefined> {
  for (const layout of await homesOf(await realpath(dataDir))) {
    const connection = await connectionOf(layout);
    if (connection === undefined || !(await isAnswering(connection))) continue;
    return { connection, directory: layout.cluster, [Symbol.asyncDispose]: async () => {} };
  }
  return undefined;
}

async function connectionOf(layout: Layout): Promise<Connection | undefined> {
  const owner = await findCluster(layout);
  if (owner === undefined) return undefined;
  const host = fitsSocket(layout.run) ? layout.run : shortSocketDirOf(layout.home, owner.uid);
  return { host, port: SOCKET_PORT, user: SUPERUSER, database: MAINTENANCE_DATABASE };
}

async function isAnswering(connection: Connection): Promise<boolean> {
  try {
    await withClient({ ...connection, ssl: false }, (client) => client.query('select 1'));
    return true;
  } catch {
    return false;
  }
}
