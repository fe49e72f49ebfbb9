import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '@skerry/kit';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../embedded/postgres.ts';
import { findTestIdentity } from '../embedded/testing/processes.ts';
import { giveTo } from '../embedded/unfinished.ts';
import { urlOf } from './server.ts';
import { clusterDirectoryOf, copyCluster, LOGGED } from './standby.ts';

/** A server whose log is kept, and which is restored to any moment of it. */
export interface ArchivedServer extends AsyncDisposable {
  /** Of the server that runs: another one after `restore`. */
  readonly url: string;
  /** Makes a base backup while it runs. */
  save(): Promise<void>;
  /**
   * The server goes, with all that it has; another one is made of the base backup and the log, up to a moment.
   * @param time as PostgreSQL writes it
   */
  restore(time: string): Promise<void>;
}

/** By the server's own means (PostgreSQL documentation, "Continuous Archiving and Point-in-Time Recovery"). */
export async function startArchivedServer(log: Logger): Promise<ArchivedServer> {
  const home = await mkdtemp(join(tmpdir(), 'skerry-test-archive-'));
  const [archive, saved, lost] = [join(home, 'archive'), join(home, 'saved'), join(home, 'lost')];
  for (const path of [archive, saved, lost]) await mkdir(path);
  const identity = await findTestIdentity();
  for (const path of [home, archive]) await giveTo(path, identity);
  const kept = { archive_mode: 'on', archive_command: `cp "%p" "${archive}/%f"` };
  const start = (dataDir: string, settings: Record<string, string>): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({ dataDir, log, settings: { ...LOGGED, ...settings } });
  let server = await start(lost, kept);
  return {
    get url() {
      return urlOf(server.connection);
    },
    save: async () => copyCluster(server, await clusterDirectoryOf(saved)),
    async restore(time) {
      await server[Symbol.asyncDispose]();
      await rm(lost, { recursive: true });
      await writeFile(join(await clusterDirectoryOf(saved), 'recovery.signal'), '');
      server = await start(saved, {
        restore_command: `cp "${archive}/%f" "%p"`,
        recovery_target_time: time,
        recovery_target_action: 'promote',
      });
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}
