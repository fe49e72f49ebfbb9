import { rmSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acquireLock, type Logger } from '@skerry/kit';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../embedded/postgres.ts';
import { readProcess } from '../embedded/process.ts';
import type { Connection } from '../embedded/server.ts';
import type { ServerSettings } from '../embedded/settings.ts';
import { readTestServerUrl } from './config.ts';

const DIR_PREFIX = 'skerry-test-postgres-';

/** Nothing else runs while a process exits, so that waiting has to block. */
const EXIT_ROUND_MS = 5;
const EXIT_ROUNDS_MAX = 400;

/** Nothing that a test writes has to survive a power cut. */
const QUICK: ServerSettings = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  shared_buffers: '32MB',
  max_connections: '100',
  autovacuum: 'off',
  // Within the kernel: databases are copies of a template.
  file_copy_method: 'clone',
};

export interface TestServer extends AsyncDisposable {
  /** postgresql://… of its maintenance database; what SKERRY_TEST_DATABASE_URL takes. */
  readonly url: string;
  readonly pid: number;
}

/** An embedded server in a temporary directory, gone on disposal. A runner of many test files starts one for all of them. */
export async function startTestServer(log: Logger, settings: ServerSettings = {}): Promise<TestServer> {
  await removeAbandoned();
  const dataDir = await mkdtemp(join(tmpdir(), `${DIR_PREFIX}${process.pid}-`));
  const server = await startEmbeddedPostgres({ dataDir, log, settings: { ...QUICK, ...settings } });
  const onExit = (): void => endAtExit(server, dataDir);
  process.on('exit', onExit);
  return {
    url: urlOf(server.connection),
    get pid() {
      return server.pid;
    },
    async [Symbol.asyncDispose]() {
      process.off('exit', onExit);
      await server[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

let own: Promise<TestServer> | undefined;

/** The URL of the server that tests share: the one they were given, or one of this process. */
export async function findTestServer(log: Logger): Promise<string> {
  const given = readTestServerUrl();
  if (given !== undefined) return given;
  if (own === undefined) {
    own = startTestServer(log);
    // All work is done: nothing but this server is left to end.
    process.once('beforeExit', () => void endTestServer());
  }
  return (await own).url;
}

/** Ends the server of this process that tests share, where it began one, for whoever has to be the last of its processes. */
export async function endTestServer(): Promise<void> {
  const server = own;
  own = undefined;
  await (await server)?.[Symbol.asyncDispose]();
}

/** A Unix socket's directory stands in the place of the host, percent-encoded. */
export function urlOf(connection: Connection): string {
  return `postgresql://${connection.user}@${encodeURIComponent(connection.host)}:${connection.port}/${connection.database}`;
}

/** The last that a process can do when it does not end by itself; after a kill -9 the kernel ends the server. */
function endAtExit(server: EmbeddedPostgres, dataDir: string): void {
  try {
    process.kill(server.pid, 'SIGQUIT');
  } catch {
    // It has ended already.
  }
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let round = 0; round < EXIT_ROUNDS_MAX && isRunning(server.pid); round++) {
    Atomics.wait(pause, 0, 0, EXIT_ROUND_MS);
  }
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
}

function isRunning(pid: number): boolean {
  const facts = readProcess(pid);
  return facts !== undefined && !facts.zombie;
}

/** Directories of test processes that were killed, once their servers have ended and nobody holds the lock. */
export async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(new RegExp(`^${DIR_PREFIX}(\\d+)-`).exec(name)?.[1]);
    // A living process may not have taken its lock yet.
    if (Number.isNaN(pid) || readProcess(pid) !== undefined) continue;
    const lock = await acquireLock(join(tmpdir(), name, 'lock'), { waitMs: 0 }).catch(() => undefined);
    if (lock === undefined) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true });
    lock[Symbol.dispose]();
  }
}
