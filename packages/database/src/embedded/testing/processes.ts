import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createLogger } from '@skerry/kit';
import { withClient } from '../../reach.ts';
import { decideIdentity, findUserNamespaces, type Identity } from '../identity.ts';
import { startEmbeddedPostgres } from '../postgres.ts';
import { readProcess } from '../process.ts';
import type { Connection } from '../server.ts';
import type { ServerSettings } from '../settings.ts';

/** No test cuts the power; where a test looks at what is durable, it leaves these out. */
export const QUICK: ServerSettings = { fsync: 'off' };

/** A directory below the temporary one, removed on disposal. */
export async function temporaryDirectory(suffix = ''): Promise<{ path: string } & AsyncDisposable> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'skerry-embedded-')));
  return {
    path: join(base, suffix),
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  };
}

let template: Promise<string> | undefined;

/** The same, with a database in it: a copy of one that is made once, which is several times as quick as making one. */
export async function databaseDirectory(suffix = ''): Promise<{ path: string } & AsyncDisposable> {
  template ??= createTemplate();
  const directory = await temporaryDirectory(suffix);
  await mkdir(directory.path, { recursive: true });
  const copy = spawn('cp', ['--archive', join(await template, 'cluster'), directory.path], {
    stdio: 'inherit',
  });
  const [code] = await once(copy, 'exit');
  if (code !== 0) throw new Error(`cp ended with ${code}`);
  return directory;
}

async function createTemplate(): Promise<string> {
  const directory = await temporaryDirectory();
  process.once('exit', () => rmSync(directory.path, { recursive: true, force: true }));
  const log = createLogger('test', 'silent');
  const server = await startEmbeddedPostgres({ dataDir: directory.path, log, settings: QUICK });
  await server[Symbol.asyncDispose]();
  return directory.path;
}

export interface ChildSupervisor extends Disposable {
  readonly child: ChildProcess;
  /** What the child printed once its database was ready. */
  readonly ready: Promise<{ pid: number; connection: Connection }>;
  /** kill -9, and the child is gone when this returns. */
  kill(): Promise<void>;
}

/** A supervisor in a process of its own; as another user, where one is given, and started by another program. */
export function startChild(
  dataDir: string,
  owner: Pick<SpawnOptions, 'uid' | 'gid'> = {},
  starter: readonly string[] = [],
): ChildSupervisor {
  const script = join(import.meta.dirname, 'child.ts');
  const [program = '', ...args] = [...starter, process.execPath, ...process.execArgv, script, dataDir];
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...owner,
  });
  const exited = once(child, 'exit');
  const line = once(createInterface({ input: child.stdout }), 'line');
  const failed = exited.then(() => {
    throw new Error('the child ended before its database was ready');
  });
  const ready = Promise.race([line, failed]).then(([text]) => JSON.parse(text as string));
  ready.catch(() => {});
  return {
    child,
    ready,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    [Symbol.dispose]() {
      child.kill('SIGKILL');
    },
  };
}

/** sched(7) */
export const SCHED_BATCH = 3;
/** The field `policy` of proc_pid_stat(5); the fields after a name of one word. */
export const readPolicy = (pid: number) => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[40]);

/** Who a new server runs as on this machine. */
export async function findTestIdentity(): Promise<Identity> {
  const euid = process.geteuid?.() ?? 0;
  const userNamespaces = euid === 0 && (await findUserNamespaces());
  return decideIdentity({ euid, clusterOwner: undefined, userNamespaces });
}

/** Pids of the living PostgreSQL processes that work in this cluster. */
export function listServerProcesses(cluster: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid))
    .map(readProcess)
    .filter((facts) => facts?.program === 'postgres' && !facts.zombie && facts.workingDirectory === cluster)
    .map((facts) => facts!.pid);
}

/** kill -9 of every process of a server, at once. */
export function killServer(cluster: string): void {
  for (const pid of listServerProcesses(cluster)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // A backend ends with its connection, or with the one that was killed before it.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

export async function query(connection: Connection, sql: string): Promise<Record<string, unknown>[]> {
  return withClient(
    connection,
    async (client) => (await client.query(sql)).rows as Record<string, unknown>[],
  );
}
