import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { AppError, type InstanceView } from '@skerry/protocol';
import type { Context } from '../context.ts';
import { startProgress } from '../output/progress.ts';
import { findInstance } from './find.ts';
import { findRecord } from './records.ts';
import { renderPhase } from './render.ts';
import { waitForSshBanner } from './ssh-banner.ts';

export interface InstanceSshOptions {
  readonly user: string;
  /** Milliseconds. */
  readonly connectTimeout: number;
}

const SSH_PORT = 22;
const CONNECT_TIMEOUT_SECONDS = 15;
const ALIVE_INTERVAL_SECONDS = 30;

const notReady = (message: string, hint: string) =>
  new AppError('INSTANCE_NOT_READY', message, { details: { hint } });

/** Throws INSTANCE_NOT_READY, with what to do about it. */
export function checkReachable(instance: InstanceView, reference: string): void {
  if (instance.desired === 'stopped') {
    throw notReady(
      `${reference} is stopped (${renderPhase(instance)})`,
      `"skerry instance start ${reference} --wait"`,
    );
  }
  if (instance.ipv6 === '' || instance.phase !== 'running') {
    const address = instance.ipv6 === '' ? 'has no address yet' : 'is not running';
    throw notReady(
      `${reference} ${address} (${renderPhase(instance)})`,
      `"skerry instance start ${reference} --wait" waits for it`,
    );
  }
  const { allowedPorts } = instance.firewall;
  if (!allowedPorts.includes(SSH_PORT)) {
    throw notReady(
      `the firewall of ${reference} does not let ssh (port ${SSH_PORT}) in`,
      `"skerry instance update ${reference} --allow ${[SSH_PORT, ...allowedPorts].join(',')}"`,
    );
  }
}

export interface SshTarget {
  readonly instanceId: string;
  readonly ipv6: string;
  readonly user: string;
  readonly knownHostsFile: string;
  readonly identityFile: string | undefined;
}

/** A path in an ssh option: in quotes, since it may hold spaces; % would begin a token (ssh_config(5)). */
const quotePath = (path: string) => `"${path.replaceAll('%', '%%')}"`;

/** What ssh is run with. The machine is known by its id: its address may pass to another one day. */
export function sshArguments(target: SshTarget, command: readonly string[]): string[] {
  const { instanceId, ipv6, user, knownHostsFile, identityFile } = target;
  const options = [
    `HostKeyAlias=${instanceId}`,
    `UserKnownHostsFile=${quotePath(knownHostsFile)}`,
    'StrictHostKeyChecking=accept-new',
    `ConnectTimeout=${CONNECT_TIMEOUT_SECONDS}`,
    `ServerAliveInterval=${ALIVE_INTERVAL_SECONDS}`,
    'LogLevel=ERROR',
    ...(identityFile === undefined ? [] : ['IdentitiesOnly=yes']),
  ];
  return [
    '-6',
    ...options.flatMap((option) => ['-o', option]),
    ...(identityFile === undefined ? [] : ['-i', identityFile]),
    '-l',
    user,
    '--',
    ipv6,
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
  using progress = startProgress(context.output.stderr);
  await waitForSshBanner(instance.ipv6, SSH_PORT, options.connectTimeout, (why) =>
    progress.show(`waiting for ssh on ${instance.ipv6} (${why})`),
  );
  progress[Symbol.dispose]();
  const target: SshTarget = {
    instanceId: instance.instance_id,
    ipv6: instance.ipv6,
    user: options.user,
    knownHostsFile: join(config, 'known_hosts'),
    identityFile: record?.identity_file ?? undefined,
  };
  return runInForeground('ssh', sshArguments(target, command));
}
