import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Logger } from '@skerry/kit';
import { readCluster } from '../backup/base-backup.ts';
import { type EmbeddedPostgres, findPlace, homesOf, startEmbeddedPostgres } from '../embedded/postgres.ts';
import type { ServerSettings } from '../embedded/settings.ts';
import { urlOf } from './server.ts';

/** Where the cluster of a directory is, or where it would be made. */
export async function clusterDirectoryOf(dataDir: string): Promise<string> {
  const { layout } = await findPlace(await homesOf(dataDir), {});
  return layout.cluster;
}

/** No test cuts the power. The log has all that another server needs. */
export const LOGGED = { fsync: 'off', wal_level: 'replica', max_wal_senders: '4', shared_buffers: '32MB' };

export interface TestCluster extends AsyncDisposable {
  readonly primaryUrl: string;
  readonly standbyUrl: string;
}

/** A base backup, as files of a directory. */
export async function copyCluster(server: EmbeddedPostgres, target: string): Promise<void> {
  for await (const file of readCluster(server)) {
    const path = join(target, file.path);
    await mkdir(file.kind === 'directory' ? path : dirname(path), { recursive: true, mode: 0o700 });
    if (file.kind === 'file') await writeFile(path, file.content(), { mode: 0o600 });
  }
}

/**
 * A primary, and a standby that follows it: two real servers. Five CPU seconds.
 * @param changed settings of both that are not those of tests
 */
export async function startTestCluster(log: Logger, changed: ServerSettings = {}): Promise<TestCluster> {
  await using stack = new AsyncDisposableStack();
  const directory = async () => {
    const path = await mkdtemp(join(tmpdir(), 'skerry-test-cluster-'));
    stack.defer(() => rm(path, { recursive: true, force: true }));
    return path;
  };
  const settings = { ...LOGGED, ...changed };
  const primary = stack.use(await startEmbeddedPostgres({ dataDir: await directory(), log, settings }));
  const { host, port, user } = primary.connection;
  const dataDir = await directory();
  const cluster = await clusterDirectoryOf(dataDir);
  await copyCluster(primary, cluster);
  await writeFile(join(cluster, 'standby.signal'), '');
  const standby = stack.use(
    await startEmbeddedPostgres({
      dataDir,
      log,
      settings: { ...settings, primary_conninfo: `host=${host} port=${port} user=${user}` },
    }),
  );
  const owned = stack.move();
  return {
    primaryUrl: urlOf(primary.connection),
    standbyUrl: urlOf(standby.connection),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
