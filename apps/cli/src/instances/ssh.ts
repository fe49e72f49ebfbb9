import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { isIP } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import { call, findNodeUrl } from '@skerry/client';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { AppError, type InstanceView } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Context } from '../context.ts';
import { renderPorts } from '../options.ts';
import { findInstance } from './find.ts';
import { findRecord } from './records.ts';
import { renderPhase } from './render.ts';
import { waitForSshBanner } from './ssh-banner.ts';

export interface InstanceSshOptions {
  readonly user: string;
  /** Milliseconds. */
  readonly connectTimeout: number;
  /** By a port of the node, for a machine here that has no IPv6. */
  readonly ipv4?: boolean;
}

const SSH_PORT = 22;
const ALIVE_INTERVAL_SECONDS = 30;

const notReady = (message: string, hint: string) =>
  new AppError('INSTANCE_NOT_READY', message, { details: { hint } });

/** Throws INSTANCE_NOT_READY, with what to do about it. */
export function checkReachable(instance: InstanceView, reference: string): void {
  if (instance.desired === 'stopped') {
    throw notReady(
      `${reference} is stopped (${renderPhase(instance)})`,
      `"skerry instance start ${shellWord(reference)} --wait"`,
    );
  }
  if (instance.ipv6 === '' || instance.phase !== 'running') {
    const address = instance.ipv6 === '' ? 'has no address yet' : 'is not running';
    throw notReady(
      `${reference} ${address} (${renderPhase(instance)})`,
      `"skerry instance start ${shellWord(reference)} --wait" waits for it`,
    );
  }
  const { allowedPorts, allowedUdpPorts } = instance.firewall;
  if (!allowedPorts.includes(SSH_PORT)) {
    const open = { allowedPorts: [SSH_PORT, ...allowedPorts], ...(allowedUdpPorts && { allowedUdpPorts }) };
    throw notReady(
      `the firewall of ${reference} blocks ssh (port ${SSH_PORT})`,
      `"skerry instance update ${shellWord(reference)} --allow ${renderPorts(open)}"`,
    );
  }
}

export interface SshTarget {
  readonly instanceId: string;
  /** IPv6, or the node's IPv4. */
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly knownHostsFile: string;
  readonly identityFile: string | undefined;
  /** For all that comes before the login, the exchange of keys included (ssh_config(5)). */
  readonly connectSeconds: number;
}

/** A path in an ssh option: in quotes, since it may hold spaces; % would begin a token (ssh_config(5)). */
const quotePath = (path: string) => `"${path.replaceAll('%', '%%')}"`;

/** What ssh is run with. The machine is known by its id: its address may pass to another one day. */
export function sshArguments(target: SshTarget, command: readonly string[]): string[] {
  const { instanceId, address, port, user, knownHostsFile, identityFile, connectSeconds } = target;
  const options = [
    `HostKeyAlias=${instanceId}`,
    `UserKnownHostsFile=${quotePath(knownHostsFile)}`,
    'StrictHostKeyChecking=accept-new',
    `ConnectTimeout=${connectSeconds}`,
    `ServerAliveInterval=${ALIVE_INTERVAL_SECONDS}`,
    'LogLevel=ERROR',
    ...(identityFile === undefined ? [] : ['IdentitiesOnly=yes']),
  ];
  return [
    address.includes(':') ? '-6' : '-4',
    ...(port === SSH_PORT ? [] : ['-p', String(port)]),
    ...options.flatMap((option) => ['-o', option]),
    ...(identityFile === undefined ? [] : ['-i', identityFile]),
    '-l',
    user,
    '--',
    address,
    ...command,
  ];
}

/** Runs a program in this one's place, as far as that goes; resolves with its exit code. */
async function runInForeground(program: string, args: readonly string[]): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit' });
  // Ctrl-C is for the program; it decides when to end.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.on('error', (error: NodeJS.ErrnoException) =>
    reject(
      error.code === 'ENOENT'
        ? new AppError('PROGRAM_MISSING', `the program ${program} is not installed (package openssh-client)`)
        : error,
    ),
  );
  child.on('exit', (code, signal) => resolve(signal ? 128 + constants.signals[signal] : (code ?? 1)));
  try {
    return await promise;
  } finally {
    process.off('SIGINT', ignore);
  }
}

/** Where the node leads ssh over IPv4 to an instance. Throws INSTANCE_NOT_READY where it does not. */
async function findIpv4Door(
  { reader }: Context,
  { instance_id: id, node_address: node }: InstanceView,
): Promise<{ address: string; port: number }> {
  if (!node) throw notReady('no node has been chosen yet', 'wait a moment');
  const shown = await call(await findNodeUrl(reader, node), NODE_API.listExecutions, {});
  const { host_ipv4: address, mapped_ports: ports } = shown[id]?.networking ?? {};
  const port = ports?.[SSH_PORT]?.host;
  if (!address || port === undefined)
    throw notReady('its node has no IPv4 port for it', 'without --ipv4 it is reached over IPv6');
  return { address, port };
}

export async function sshInstance(
  context: Context,
  reference: string,
  command: readonly string[],
  options: InstanceSshOptions,
): Promise<number> {
  const instance = await findInstance(context, reference);
  checkReachable(instance, reference);
  const { config } = context.paths;
  await mkdir(config, { recursive: true, mode: 0o700 });
  const record = await findRecord(config, instance.instance_id);
  using progress = context.output.progress();
  const { address, port } = options.ipv4
    ? await findIpv4Door(context, instance)
    : { address: instance.ipv6, port: SSH_PORT };
  // It comes from the network, and ssh hands it on to whatever its configuration names.
  if (isIP(address) === 0)
    throw new AppError('UNEXPECTED_ANSWER', `${JSON.stringify(address)} is no address of ${reference}`);
  await waitForSshBanner(address, port, options.connectTimeout, (why) =>
    progress.show(`waiting for ssh on ${address} (${why})`),
  );
  progress[Symbol.dispose]();
  const target: SshTarget = {
    instanceId: instance.instance_id,
    address,
    port,
    user: options.user,
    knownHostsFile: join(config, 'known_hosts'),
    identityFile: record?.identity_file ?? undefined,
    connectSeconds: Math.ceil(options.connectTimeout / 1000),
  };
  return runInForeground('ssh', sshArguments(target, command));
}
