import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { createSigner } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { run } from '../../../services/compute/src/host/run.ts';
import { COMMAND, NODE } from '../../debian/layout.ts';
import { coreUrl, HERE, TWO } from './places.ts';

/** What the network has on this machine: core node, scheduler, monitor and credit service, out of the package. */

const UNPACK_MS = 600_000;
const START_MS = 300_000;

/** The command of the package, unpacked here. */
export interface Unpacked {
  readonly node: string;
  readonly command: string;
}

export async function unpack(deb: string, to: string): Promise<Unpacked> {
  await run('dpkg-deb', ['--extract', deb, to], { timeoutMs: UNPACK_MS });
  return { node: join(to, NODE), command: join(to, COMMAND) };
}

const SERVICES = `scheduler=http://${HERE}:4030,credit=http://${HERE}:4032,gateway=http://${TWO.ipv4.guest}:8081`;

/** Settings of each daemon; whom the core node trusts is known by the keys. */
function settingsOf(
  address: Readonly<Record<string, string>>,
): Readonly<Record<string, Record<string, string>>> {
  return {
    core: {
      HOST: HERE,
      ALLOW_PRIVATE: 'yes',
      SCHEDULERS: address.scheduler!,
      CREDIT_PUBLISHERS: address.credit!,
      SCORING_PUBLISHERS: address.monitor!,
      SERVICES,
    },
    scheduler: { HOST: HERE, TRUST: 'all', ALLOW_PRIVATE: 'yes' },
    monitor: { ALLOW_PRIVATE: 'yes' },
    credit: { HOST: HERE },
  };
}

async function startOne(
  { node, command }: Unpacked,
  role: string,
  home: string,
  own: Record<string, string>,
) {
  const prefix = `SKERRY_${role.toUpperCase()}_`;
  const settings = Object.entries({ CORE_URL: coreUrl, ...own, DATA_DIR: join(home, role) })
    .filter(([name]) => !(role === 'core' && name === 'CORE_URL'))
    .map(([name, value]) => [prefix + name, value]);
  const log = await open(join(home, `${role}.log`), 'a', 0o600);
  const child = spawn(node, [command, role], {
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
    env: { PATH: process.env.PATH, SKERRY_HOME: home, ...Object.fromEntries(settings) },
  });
  await log.close();
  const ended = once(child, 'exit').then((): never => {
    throw new Error(`the ${role} ended; its words are in ${join(home, `${role}.log`)}`);
  });
  const late = AbortSignal.timeout(START_MS);
  await Promise.race([once(child, 'message', { signal: late }), ended]);
  ended.catch(() => {});
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Starts them, one after another. */
export async function startThirdPlace(unpacked: Unpacked, home: string): Promise<AsyncDisposable> {
  await using started = new AsyncDisposableStack();
  const address: Record<string, string> = {};
  for (const role of ['scheduler', 'monitor', 'credit']) {
    await mkdir(join(home, role), { recursive: true, mode: 0o700 });
    address[role] = createSigner(await loadOrCreateKeyFile(join(home, role, 'key'))).address;
  }
  for (const [role, settings] of Object.entries(settingsOf(address)))
    started.adopt(await startOne(unpacked, role, home, settings), stop);
  return started.move();
}
