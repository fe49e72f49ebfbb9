import { randomBytes } from 'node:crypto';
import { chmod, cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acquireLock, type Logger } from '@skerry/kit';
import { type Binaries, findPackageDir, prepareBinaries } from '../embedded/binaries.ts';
import { commandOf, type Identity } from '../embedded/identity.ts';
import { layoutOf } from '../embedded/layout.ts';
import { runProgram } from '../embedded/program.ts';
import { type ServerPlan, startServer } from '../embedded/server.ts';
import type { ServerSettings } from '../embedded/settings.ts';
import { findTestIdentity } from '../embedded/testing/processes.ts';
import { giveTo } from '../embedded/unfinished.ts';
import { withClient } from '../reach.ts';
import type { TestServer } from './server.ts';

/** Where Debian and its descendants put the programs of each major version. */
const DEBIAN_ROOT = '/usr/lib/postgresql';

const INITDB_TIMEOUT_MS = 240_000;
const USER = 'operator';

interface TcpServerOptions {
  readonly password?: string;
  /** It answers reads, and takes writes once it is promoted. */
  readonly isStandby?: boolean;
}

export interface TcpTestServer extends TestServer {
  /** The directory of its data. */
  readonly cluster: string;
}

/** What makes a server a standby (PostgreSQL documentation, "Standby Server Operation"). */
async function writeSignal(cluster: string): Promise<string> {
  const path = join(cluster, 'standby.signal');
  await writeFile(path, '');
  return path;
}

/**
 * A PostgreSQL as an operator would run it: reached over TCP with a password, made with other options than ours, and
 * of the distribution's version where that is installed. For tests of DATABASE_URL.
 */
export async function startTcpTestServer(log: Logger, given: TcpServerOptions = {}): Promise<TcpTestServer> {
  const { home, binaries, identity, cluster } = await prepareHome();
  const password = given.password ?? randomBytes(12).toString('hex');
  await createCluster(binaries, identity, cluster, home, password);
  if (given.isStandby) await giveTo(await writeSignal(cluster), identity);
  return start({ home, binaries, identity, cluster, password, log });
}

/** A standby that follows a server, as a base backup makes one (PostgreSQL documentation, "Making a Base Backup Using the Low Level API"). */
export async function startTcpStandby(log: Logger, primary: TcpTestServer): Promise<TcpTestServer> {
  const { home, binaries, identity, cluster } = await prepareHome();
  const { username, password, hostname, port } = new URL(primary.url);
  await withClient({ connectionString: primary.url }, async (client) => {
    await client.query("select pg_backup_start('standby', true)");
    await cp(primary.cluster, cluster, { recursive: true });
    await rm(join(cluster, 'postmaster.pid'));
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    await writeFile(join(cluster, 'backup_label'), rows[0]!.labelfile);
  });
  await writeSignal(cluster);
  await chmod(cluster, 0o700);
  const names = await readdir(cluster, { recursive: true });
  for (const path of [cluster, ...names.map((name) => join(cluster, name))]) await giveTo(path, identity);
  const primary_conninfo = `host=${hostname} port=${port} user=${username} password=${password}`;
  return start({ home, binaries, identity, cluster, password, log }, { primary_conninfo });
}

/** A directory that the server's user can reach; everything in it is private by itself. */
async function prepareHome() {
  const home = await mkdtemp(join(tmpdir(), 'skerry-test-tcp-'));
  const layout = layoutOf(home);
  const binaries = (await findDebianBinaries()) ?? (await prepareBinaries(findPackageDir(), layout.lib));
  const identity = await findTestIdentity();
  await giveTo(home, identity);
  return { home, binaries, identity, cluster: layout.cluster };
}

interface TcpPlan extends Pick<ServerPlan, 'binaries' | 'identity' | 'cluster' | 'log'> {
  readonly home: string;
  readonly password: string;
}

async function start(plan: TcpPlan, more: ServerSettings = {}): Promise<TcpTestServer> {
  const { home, cluster, password } = plan;
  const lock = (await acquireLock(join(home, 'lock'), { waitMs: 0 }))!;
  const host = ownAddress();
  const port = await findFreePort(host);
  const settings = {
    listen_addresses: host,
    port: String(port),
    unix_socket_directories: `"${home}"`,
    fsync: 'off',
    // Within the cluster: what a kill -9 leaves goes with that.
    dynamic_shared_memory_type: 'mmap',
    ...more,
  };
  const connection = { host: home, port, user: USER, database: 'postgres' };
  const server = await startServer({ ...plan, settings, connection, lockFd: lock.fd });
  return {
    url: `postgresql://${USER}:${password}@${host}:${port}/postgres`,
    pid: server.pid,
    cluster,
    async [Symbol.asyncDispose]() {
      await server.stop();
      lock[Symbol.dispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

async function createCluster(
  binaries: Binaries,
  identity: Identity,
  cluster: string,
  home: string,
  password: string,
): Promise<void> {
  const passwordFile = join(home, 'password');
  await writeFile(passwordFile, password);
  await chmod(passwordFile, 0o600);
  await giveTo(passwordFile, identity);
  const options = [
    '--auth-local=trust',
    '--auth-host=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--locale=C.UTF-8',
    '--no-sync',
  ];
  const command = commandOf(identity, 'KILL', [
    binaries.initdb,
    `--username=${USER}`,
    ...options,
    '-D',
    cluster,
  ]);
  const { libraryPath } = binaries;
  const { code, output } = await runProgram(command, { timeoutMs: INITDB_TIMEOUT_MS, libraryPath });
  if (code !== 0) throw new Error(`initdb failed: ${output}`);
}

async function findDebianBinaries(): Promise<Binaries | undefined> {
  const versions = await readdir(DEBIAN_ROOT).catch(() => []);
  const newest = versions.map(Number).sort((a, b) => b - a)[0];
  if (newest === undefined) return undefined;
  const bin = join(DEBIAN_ROOT, String(newest), 'bin');
  return { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres'), libraryPath: undefined };
}

/** A loopback address of this process alone, so that nobody else takes a port of it that was found free. */
export const ownAddress = () =>
  `127.${1 + (process.pid >> 16)}.${(process.pid >> 8) & 0xff}.${process.pid & 0xff}`;

export async function findFreePort(host: string): Promise<number> {
  const server = createServer();
  const listening = Promise.withResolvers<void>();
  server.listen(0, host, () => listening.resolve());
  await listening.promise;
  const { port } = server.address() as { port: number };
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  await closed.promise;
  return port;
}
