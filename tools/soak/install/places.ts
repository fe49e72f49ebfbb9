import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { serveNames } from '@skerry/kit/testing/dns';
import { run } from '../../../services/compute/src/host/run.ts';
import type { Ipv4Link } from '../../../services/compute/src/network/ipv4.ts';
import { Machine } from '../../../services/compute/src/testing/namespaces.ts';

/** Where everything is: addresses of examples and laboratories (RFC 5737, RFC 3849), in a network namespace of this scenario. */

/** A server, and the wire between it and this machine. */
export interface Link {
  /** Of the tap on this machine. */
  readonly tap: string;
  readonly mac: string;
  readonly ipv4: Ipv4Link;
  readonly ipv6: { readonly guest: string; readonly gateway: string };
}

/** A link's two addresses, from the number of its network. */
const ipv4Of = (number: number): Ipv4Link => ({
  network: `198.51.100.${number}/30`,
  gateway: `198.51.100.${number + 1}`,
  guest: `198.51.100.${number + 2}`,
});

const linkOf = (number: number): Link => ({
  tap: `server${number}`,
  mac: `52:54:00:00:00:0${number}`,
  ipv4: ipv4Of(4 * number),
  ipv6: { guest: `2001:db8:5:f${number}::2`, gateway: `2001:db8:5:f${number}::1` },
});

/** The one that becomes a compute node, and the one that becomes a gateway. */
export const [ONE, TWO] = [linkOf(1), linkOf(2)];
/** Instances of the compute node get their addresses out of it. */
export const PREFIX = '2001:db8:5:1::/64';
export const DOMAIN = 'apps.test';

/** This machine, where the rest of the network is. */
export const HERE = '198.51.100.254';
export const coreUrl = `http://${HERE}:4024`;
const NAME_PORT = 53;

/** Links, routes and names of the namespace that this process is in. Gives its name server. */
export async function openNetwork(directory: string): Promise<Disposable> {
  await run('ip', ['link', 'set', 'lo', 'up']);
  await run('ip', ['addr', 'add', `${HERE}/32`, 'dev', 'lo']);
  await run('sysctl', ['-qw', 'net.ipv6.conf.all.forwarding=1', 'net.ipv4.ip_forward=1']);
  for (const { tap, ipv4, ipv6 } of [ONE, TWO]) {
    await run('ip', ['tuntap', 'add', 'dev', tap, 'mode', 'tap']);
    await run('ip', ['addr', 'add', `${ipv4.gateway}/30`, 'dev', tap]);
    await run('ip', ['-6', 'addr', 'add', `${ipv6.gateway}/64`, 'dev', tap, 'nodad']);
    await run('ip', ['-6', 'addr', 'add', 'fe80::1/64', 'dev', tap, 'nodad']);
    await run('ip', ['link', 'set', tap, 'up']);
  }
  await run('ip', ['-6', 'route', 'add', PREFIX, 'via', ONE.ipv6.guest]);
  const resolver = join(directory, 'resolv.conf');
  await writeFile(resolver, `nameserver ${HERE}\n`);
  await run('mount', ['--bind', resolver, '/etc/resolv.conf']);
  return serveNames({ host: HERE, port: NAME_PORT }, (name) =>
    name.endsWith(`.${DOMAIN}`) ? [TWO.ipv4.guest] : [],
  );
}

const USER = { guest: '2001:db8:5:fa::2', ipv4: ipv4Of(40) };

/** A third place, where a user is: it has nothing to do with the two servers. */
export async function openPlaceOfUser(): Promise<Machine> {
  const machine = await Machine.start();
  await machine.wire('user');
  await run('ip', ['addr', 'add', `${USER.ipv4.gateway}/30`, 'dev', 'user']);
  await run('ip', ['-6', 'addr', 'add', 'fe80::1/64', 'dev', 'user', 'nodad']);
  await run('ip', ['link', 'set', 'user', 'up']);
  await run('ip', ['-6', 'route', 'add', `${USER.guest}/128`, 'dev', 'user']);
  await machine.configure(USER);
  return machine;
}

/** Starts a program of the third place, and gives it when it runs. */
export async function startThere({ pid }: Machine, program: string, ...args: string[]) {
  const child = spawn('nsenter', [`--net=/proc/${pid}/ns/net`, '--', program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child, 'spawn');
  return child;
}
