import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@skerry/kit/testing/until';
import { commandOf } from '../embedded/identity.ts';
import { findTestIdentity } from '../embedded/testing/processes.ts';
import { giveTo } from '../embedded/unfinished.ts';
import { findFreePort, ownAddress } from './tcp-server.ts';

const PROGRAM = 'pgbouncer';

export interface TestPooler extends AsyncDisposable {
  /** As the server's, through the pooler. */
  readonly url: string;
}

const answers = (host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, host, () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });

/**
 * A PgBouncer in transaction mode in front of a server.
 * @param serverUrl postgresql://user:password@host:port/name
 * @param settings lines for its section [pgbouncer]
 */
export async function startTestPooler(
  serverUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<TestPooler> {
  const { username, password, hostname, port } = new URL(serverUrl);
  const home = await mkdtemp(join(tmpdir(), 'skerry-test-pooler-'));
  const own = ownAddress();
  const ownPort = await findFreePort(own);
  const users = join(home, 'users');
  await writeFile(users, `"${username}" "${password}"\n`);
  const values = {
    listen_addr: own,
    listen_port: String(ownPort),
    unix_socket_dir: '',
    auth_type: 'plain',
    auth_file: users,
    pool_mode: 'transaction',
    ...settings,
  };
  const lines = Object.entries(values).map(([name, value]) => `${name} = ${value}`);
  const file = join(home, 'pgbouncer.ini');
  await writeFile(file, `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const identity = await findTestIdentity();
  for (const path of [home, users, file]) {
    await chmod(path, path === home ? 0o700 : 0o600);
    await giveTo(path, identity);
  }
  const { program, args, owner } = commandOf(identity, 'KILL', [PROGRAM, '--quiet', file]);
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'], ...owner });
  const ended = once(child, 'exit');
  await until('the pooler listens', () => answers(own, ownPort));
  const url = new URL(serverUrl);
  url.host = `${own}:${ownPort}`;
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      await rm(home, { recursive: true, force: true });
    },
  };
}
