import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@skerry/kit';
import { AppError, type InstanceStatusContent, type InstanceView, type Reason } from '@skerry/protocol';
import { AddressBook } from '../../network/address-book.ts';
import { ipv4LinkOf } from '../../network/ipv4.ts';
import { machineIdOf, networkNames, tapName } from '../../network/names.ts';
import type { GuestLink } from '../../network/ruleset.ts';
import { uuidOf } from '../../vm/command-line.ts';
import { isQemuOf } from '../../vm/process.ts';
import type { InstanceDeps } from '../deps.ts';
import { Instances } from '../instances.ts';
import { instanceDirectory } from '../record/record.ts';

export const POOL = '172.16.0.0/20';
export const NODE = 'f'.repeat(64);
export const NAMES = networkNames(NODE);
export const [WHOLE, RUNNING, ENDED] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [
  string,
  string,
  string,
];
export const WANTED = {
  ...{ isRunning: false, restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [] },
};

/** A program that is taken for the QEMU of an instance. */
export async function startQemu(dataDir: string, id: string, ...more: string[]) {
  const program = join(dataDir, 'qemu-system-shell');
  await copyFile('/bin/sh', program);
  const args = ['-c', 'read line', '-uuid', uuidOf(machineIdOf(id)), ...more];
  const cwd = instanceDirectory(dataDir, id);
  const machine = spawn(program, args, { cwd, stdio: ['pipe', 'ignore', 'ignore'] });
  await once(machine, 'spawn');
  return {
    lives: () => isQemuOf(machine.pid!, cwd, machineIdOf(id)),
    async [Symbol.asyncDispose]() {
      if (machine.exitCode !== null || machine.signalCode !== null) return;
      machine.kill('SIGKILL');
      await once(machine, 'exit');
    },
  };
}

export async function damageRecord(dataDir: string, id: string): Promise<void> {
  await mkdir(instanceDirectory(dataDir, id), { recursive: true });
  await writeFile(join(instanceDirectory(dataDir, id), 'vm.json'), '{"version":1');
}

/**
 * A node that finds its link 7 at the tap of the machine that runs. It makes no images.
 * @param add sets up a guest's part of the kernel's network
 */
export function openInstances(dataDir: string, add = async () => {}, log = createLogger('test', 'silent')) {
  const ending = new AbortController();
  const started: unknown[] = [];
  const added: [string, string][] = [];
  const asked: string[] = [];
  const told: InstanceStatusContent[] = [];
  const addresses = new AddressBook({ table: 'skerry_test', ports: { first: 24_000, last: 24_099 } });
  const deps = {
    ...{ dataDir, ipv4Pool: POOL, now: Date.now, log, signal: ending.signal },
    network: {
      findGateway: async (tap: string) =>
        tap === tapName(NAMES, RUNNING) ? ipv4LinkOf(POOL, 7).gateway : undefined,
      start: async (guests: readonly { tap: string }[], held: readonly string[]) =>
        void started.push([guests.map(({ tap }) => tap), held]),
      add({ tap, ipv4 }: GuestLink) {
        added.push([tap, ipv4.gateway]);
        return add();
      },
      remove: async () => {},
    },
    images: {
      async ensure(name: string) {
        asked.push(name);
        throw new AppError('INVALID_IMAGE', 'none');
      },
    },
    addresses,
  } as unknown as InstanceDeps;
  const instances = new Instances({
    ...{ nodeId: NODE, ipv6Prefix: 'fd00:1:2:3::/64', names: NAMES, besideBytes: 0, obstacle: null },
    ...{ capacity: { cpu: 1, memoryMib: 512, diskGib: 1 }, deps, tell: (status) => told.push(status) },
  });
  return {
    ...{ instances, addresses, started, added, asked, told },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await instances.settled();
    },
  };
}

export const viewOf = (desired: 'running' | 'stopped', id: string = RUNNING) =>
  ({
    ...{ instance_id: id, node_id: NODE, owner: `0x${'1'.repeat(40)}`, desired, restart_id: null },
    ...{ cpu: 1, memory: 512, disk: 1, image: 'debian:12', ssh_key: '', phase: 'scheduled' },
    firewall: { allowedPorts: [] },
  }) as unknown as InstanceView;

export const NEED = { cpu: 1, memoryMib: 512, diskGib: 1 };
export const refusalOf = (answer: unknown) =>
  typeof answer === 'object' ? (answer as Reason).message : undefined;
