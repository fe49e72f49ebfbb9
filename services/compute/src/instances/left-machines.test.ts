import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, type InstanceStatusContent, type InstanceView, type Reason } from '@skerry/protocol';
import { AddressBook, type Ipv4Claim } from '../network/address-book.ts';
import { ipv4LinkOf } from '../network/ipv4.ts';
import { machineIdOf, networkNames, tapName } from '../network/names.ts';
import type { GuestLink } from '../network/ruleset.ts';
import { inDirectory } from '../testing/directory.ts';
import { uuidOf } from '../vm/command-line.ts';
import { isQemuOf } from '../vm/process.ts';
import type { InstanceDeps } from './deps.ts';
import { listReleased } from './disks/released.ts';
import { Instances } from './instances.ts';
import { findLeftMachines } from './left-machines.ts';
import { instanceDirectory, newRecord, writeRecord } from './record/record.ts';

const POOL = '172.16.0.0/20';
const NODE = 'f'.repeat(64);
const NAMES = networkNames(NODE);
const [WHOLE, RUNNING, ENDED] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [string, string, string];
const WANTED = {
  ...{ isRunning: false, restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [] },
};

/** A program that is taken for the QEMU of an instance. */
async function startQemu(dataDir: string, id: string, ...more: string[]) {
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

async function damageRecord(dataDir: string, id: string): Promise<void> {
  await mkdir(instanceDirectory(dataDir, id), { recursive: true });
  await writeFile(join(instanceDirectory(dataDir, id), 'vm.json'), '{"version":1');
}

/**
 * A node that finds its link 7 at the tap of the machine that runs. It makes no images.
 * @param add sets up a guest's part of the kernel's network
 */
function openInstances(dataDir: string, add = async () => {}) {
  const ending = new AbortController();
  const started: unknown[] = [];
  const added: [string, string][] = [];
  const asked: string[] = [];
  const told: InstanceStatusContent[] = [];
  const addresses = new AddressBook({ table: 'skerry_test', ports: { first: 24_000, last: 24_099 } });
  const deps = {
    ...{ dataDir, ipv4Pool: POOL, now: Date.now, log: createLogger('test', 'silent'), signal: ending.signal },
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

test('a machine that runs keeps its tap and its link though the record of its instance is damaged', () =>
  inDirectory(async (dataDir) => {
    const own: Ipv4Claim = { link: 0, hostPorts: {} };
    await writeRecord(dataDir, { ...newRecord(WHOLE, WANTED, 1), base: 'bases/x', ipv4: own });
    for (const id of [RUNNING, ENDED]) await damageRecord(dataDir, id);
    await using _qemu = await startQemu(dataDir, RUNNING);
    assert.deepEqual(await findLeftMachines(dataDir), [RUNNING]);
    await using node = openInstances(dataDir);
    await node.instances.resume(0);
    assert.deepEqual(node.started, [[[tapName(NAMES, WHOLE)], [tapName(NAMES, RUNNING)]]]);
    assert.equal((await node.addresses.claim(RUNNING, { allowedPorts: [] })).link, 7);
  }));

const viewOf = (desired: 'running' | 'stopped', id: string = RUNNING) =>
  ({
    ...{ instance_id: id, node_id: NODE, owner: `0x${'1'.repeat(40)}`, desired, restart_id: null },
    ...{ cpu: 1, memory: 512, disk: 1, image: 'debian:12', ssh_key: '', phase: 'scheduled' },
    firewall: { allowedPorts: [] },
  }) as unknown as InstanceView;

test('a machine whose record is damaged is taken over when its instance is named again, and has its network', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await using qemu = await startQemu(dataDir, RUNNING);
    await using node = openInstances(dataDir);
    const { instances, added, asked, told } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running'));
    await until('something is told', () => told.length > 0);
    assert.equal(told[0]!.phase, 'starting');
    assert.match(told[0]!.reason?.message ?? '', /QEMU is running but does not answer/);
    assert.deepEqual(added, [[tapName(NAMES, RUNNING), ipv4LinkOf(POOL, 7).gateway]]);
    // Before anything is done that could end this process: the next one would take its tap away.
    assert.equal(instances.find(RUNNING)?.record.ipv4?.link, 7);
    assert.deepEqual(asked, []);
    assert.ok(await qemu.lives());
  }));

test('a machine whose record is damaged ends when its instance is to be stopped', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await using qemu = await startQemu(dataDir, RUNNING);
    await using node = openInstances(dataDir);
    const { instances, told } = node;
    await instances.resume(0);
    await instances.apply(viewOf('stopped'));
    await until('it is stopped', () => told.at(-1)?.phase === 'stopped');
    assert.equal(await qemu.lives(), false);
  }));

const NEED = { cpu: 1, memoryMib: 512, diskGib: 1 };
const refusalOf = (answer: unknown) => (typeof answer === 'object' ? (answer as Reason).message : undefined);

test('a machine whose record is damaged keeps the files of its volumes and what it was promised, whatever fails meanwhile', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    const volume = join(instanceDirectory(dataDir, RUNNING), 'volume-0.raw');
    await writeFile(volume, 'written');
    await using _qemu = await startQemu(dataDir, RUNNING);
    await using node = openInstances(dataDir, async () => {
      throw new AppError('INVALID_IMAGE', 'what is not tried again');
    });
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running'));
    await until('it is given up', () => instances.find(RUNNING)?.record.failure != null);
    // Behind whatever the failure had done.
    await instances.find(RUNNING)!.runTask(async () => {});
    assert.equal(await readFile(volume, 'utf8'), 'written');
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', / 0 MiB of memory left /);
  }));

test('an instance whose record is damaged keeps its volumes, though it cannot be prepared and its owner forgets it', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    const volume = join(instanceDirectory(dataDir, ENDED), 'volume-0.raw');
    await writeFile(volume, 'written');
    await using node = openInstances(dataDir);
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running', ENDED));
    await until('it is given up', () => instances.find(ENDED)?.record.failure != null);
    // Behind whatever the failure had done.
    await instances.find(ENDED)!.runTask(async () => {});
    assert.equal(await readFile(volume, 'utf8'), 'written');
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', / 0 GiB of disk left /);
    await instances.forget(ENDED);
    await until('it has left', () => instances.find(ENDED) === undefined);
    const [aside] = await listReleased(dataDir);
    assert.equal(await readFile(join(aside!.directory, 'volume-0.raw'), 'utf8'), 'written');
  }));

/** The beginning of a disk. */
function diskOf(gib: number): Buffer {
  const header = Buffer.alloc(104);
  header.writeUInt32BE(0x514649fb);
  header.writeBigUInt64BE(BigInt(gib) * 1024n ** 3n, 24);
  return header;
}

test('what a machine has whose record is damaged is promised to nobody else, and to its own instance again', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await using _qemu = await startQemu(dataDir, RUNNING, '-smp', 'cpus=4', '-m', 'size=512M');
    await using node = openInstances(dataDir);
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running', WHOLE));
    const lack =
      /^this node has 0 virtual cores left of the 1 needed, 0 MiB of memory left of the 512 needed$/;
    assert.match(instances.refusalOf(WHOLE) ?? '', lack);
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', lack);
    await instances.apply(viewOf('running'));
    assert.equal(instances.refusalOf(RUNNING), undefined);
    assert.ok(instances.find(RUNNING));
  }));

test('a disk whose record is damaged is promised to nobody else, and its own instance comes back to it', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await writeFile(join(instanceDirectory(dataDir, ENDED), 'disk.qcow2'), diskOf(1));
    await using node = openInstances(dataDir);
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('stopped', WHOLE));
    const lack = /^this node has 0 GiB of disk left of the 1 needed$/;
    assert.match(instances.refusalOf(WHOLE) ?? '', lack);
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', lack);
    await instances.apply(viewOf('running', ENDED));
    await until('it is given up', () => instances.find(ENDED)?.record.failure != null);
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', / 0 GiB of disk left /);
  }));
