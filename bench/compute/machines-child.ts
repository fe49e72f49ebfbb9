// From the allocation of a virtual machine to the first byte of its server for ssh, against QEMU started by hand with the same
// kernel, image and arguments, in turn. Run by machines.ts.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../services/compute/src/host/run.ts';
import { machineUid } from '../../services/compute/src/host/users.ts';
import { IMAGE_FILES } from '../../services/compute/src/images/image.ts';
import type { InstanceRecord } from '../../services/compute/src/instances/record/record.ts';
import type { AnnouncedNode } from '../../services/compute/src/testing/real-core.ts';
import { createTiny, storeTiny } from '../../services/compute/src/testing/tiny-guest.ts';
import {
  isPhase,
  PREFIX,
  playInWorld,
  READY_MS,
  STOP_MS,
  type VmWorld,
} from '../../services/compute/src/testing/vm-world.ts';
import { until } from '../../services/compute/src/testing/wait.ts';
import { qemuArguments } from '../../services/compute/src/vm/command-line.ts';
import { MACHINE_FILES } from '../../services/compute/src/vm/machine.ts';
import { writeSeed } from '../../services/compute/src/vm/seed.ts';
import { QEMU } from '../../services/compute/src/vm/vm.ts';
import { Figures } from '../measure/figures.ts';

/** The cache, the image, the file that the figures go to, and how many rounds there are of each guest. */
const [, , FIGURES_FILE = '', TINY_ROUNDS = '10', DEBIAN_ROUNDS = '3'] = process.argv.slice(2);
const BARE_TAP = 'bare0';
const BARE_ADDRESS = 'fd5c:e771:0:2::11';
const CONNECT_EVERY_MS = 5;
const CONNECT_LIMIT_MS = 300;

/** What Skerry may take until it starts QEMU. */
const GOAL_MS = 150;

const figures = new Figures(console.log);

/** Resolves at the first byte that somebody says on port 22. */
async function firstByte(address: string): Promise<void> {
  await until('a server for ssh answers', READY_MS, () => hearsByte(address), CONNECT_EVERY_MS);
}

function hearsByte(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: 22 });
    const finish = (result: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    // A connection that is made is given the time it takes: only one that is not made is tried again.
    const timer = setTimeout(() => socket.connecting && finish(false), CONNECT_LIMIT_MS);
    socket.once('data', () => finish(true));
    socket.once('error', () => finish(false)).once('end', () => finish(false));
  });
}

interface Start {
  /** To the first byte, in milliseconds. */
  readonly wholeMs: number;
  /** Until QEMU was about to be started. */
  readonly beforeQemuMs: number;
  /** Of that, since the node took the instance. */
  readonly nodeMs: number;
}

interface Subject {
  readonly name: string;
  readonly rounds: number;
  readonly memoryMib: number;
  readonly diskGib: number;
  create(onCreated: () => void): ReturnType<VmWorld['create']>;
}

async function startOurs(world: VmWorld, subject: Subject): Promise<Start & { record: InstanceRecord }> {
  // The clock begins with the scheduler's word: before it nobody knows which node it will be.
  let sinceMs = 0;
  const { instance_id: id, ipv6 } = await subject.create(() => {
    sinceMs = Date.now();
  });
  await firstByte(ipv6);
  const wholeMs = Date.now() - sinceMs;
  await world.core.until(id, isPhase('running'), READY_MS);
  const path = join(world.dataDir, 'instances', id, 'vm.json');
  const record = JSON.parse(await readFile(path, 'utf8')) as InstanceRecord;
  await world.core.client.postMessage({ type: 'FORGET', content: { hashes: [id] } });
  const isLeft = () =>
    readFile(path).then(
      () => true,
      () => false,
    );
  await until('the instance is gone', STOP_MS, async () => !(await isLeft()));
  const bootedAtMs = record.bootedAtMs!;
  const nodeMs = bootedAtMs - record.phaseTimesMs.scheduled!;
  return { wholeMs, beforeQemuMs: bootedAtMs - sinceMs, nodeMs, record };
}

/** All is ready but QEMU: the tap, the disk, the seed. */
async function startBare(world: VmWorld, subject: Subject, record: InstanceRecord): Promise<Start> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bare-'));
  const base = join(world.dataDir, record.base!);
  const kernel = join(world.dataDir, record.kernel ?? record.base!);
  const mac = '52:54:00:00:00:99';
  const child: { qemu?: ChildProcess } = {};
  try {
    await mkdir(directory, { recursive: true });
    const disk = ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', join(base, IMAGE_FILES.disk)];
    await run('qemu-img', [...disk, join(directory, MACHINE_FILES.disk), `${subject.diskGib}G`]);
    const seed = {
      instanceId: `iid-${process.uptime()}`,
      hostname: 'bare',
      sshKeys: [world.sshKey],
      mac,
      address: `${BARE_ADDRESS}/124`,
      ipv4: { network: '172.31.99.0/30', gateway: '172.31.99.1', guest: '172.31.99.2' },
      nameServers: [],
      volumes: [],
    };
    await writeSeed(seed, join(directory, MACHINE_FILES.seed));
    const machine = {
      id: 'b'.repeat(64),
      machineId: 'b'.repeat(32),
      cpu: 1,
      memoryMib: subject.memoryMib,
      boot: { kernel: join(kernel, IMAGE_FILES.kernel), initrd: join(kernel, IMAGE_FILES.initrd) },
      disk: MACHINE_FILES.disk,
      seed: MACHINE_FILES.seed,
      volumes: [],
      tap: BARE_TAP,
      mac,
    };
    const sinceMs = Date.now();
    child.qemu = spawn(
      QEMU,
      qemuArguments(machine, 'tcg', { uid: machineUid(machine.id), root: directory }),
      {
        cwd: directory,
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    );
    await firstByte(BARE_ADDRESS);
    return { wholeMs: Date.now() - sinceMs, beforeQemuMs: 0, nodeMs: 0 };
  } finally {
    if (child.qemu?.kill('SIGKILL')) await once(child.qemu, 'exit');
    await rm(directory, { recursive: true, force: true });
  }
}

async function compare(world: VmWorld, subject: Subject): Promise<void> {
  // Its image is made and put in its place before anything is measured.
  const { record } = await startOurs(world, subject);
  const ours: Start[] = [];
  const bare: Start[] = [];
  for (let round = 0; round < subject.rounds; round++) {
    if (round % 2 === 0) ours.push(await startOurs(world, subject));
    bare.push(await startBare(world, subject, record));
    if (round % 2 === 1) ours.push(await startOurs(world, subject));
  }
  const [all, bareAll] = [ours, bare].map((starts) => starts.map(({ wholeMs }) => wholeMs));
  figures.group(`${subject.name}, emulated (TCG)`);
  figures.add('allocation to first byte of ssh', 'ms', all!);
  figures.add('bare QEMU, start to first byte', 'ms', bareAll!);
  const more = all!.map((ms, index) => ms - bareAll![index]!);
  figures.add('difference within a round', 'ms', more);
  const before = ours.map(({ beforeQemuMs }) => beforeQemuMs);
  figures.add('Skerry: allocation until QEMU starts', 'ms', before, {
    goal: { of: 'median', most: GOAL_MS },
  });
  const inNode = ours.map(({ nodeMs }) => nodeMs);
  figures.add('of which in the node, after it received the allocation', 'ms', inNode);
}

async function makeBareTap(): Promise<void> {
  await run('ip', ['tuntap', 'add', BARE_TAP, 'mode', 'tap']);
  await run('ip', ['-6', 'addr', 'add', 'fe80::1/64', 'dev', BARE_TAP, 'nodad']);
  await run('ip', ['link', 'set', BARE_TAP, 'up']);
  await run('ip', ['-6', 'route', 'add', `${BARE_ADDRESS.replace(/1$/, '0')}/124`, 'dev', BARE_TAP]);
}

async function scenario(world: VmWorld): Promise<void> {
  await world.startNode();
  const node: AnnouncedNode = await world.announced();
  await makeBareTap();
  const image = await storeTiny(world);
  await compare(world, {
    name: 'A guest of one script',
    rounds: Number(TINY_ROUNDS),
    memoryMib: 128,
    diskGib: 1,
    create: (onCreated) => createTiny(world, 'tiny', image, node, onCreated),
  });
  if (Number(DEBIAN_ROUNDS) === 0) return;
  await compare(world, {
    name: 'debian:12',
    rounds: Number(DEBIAN_ROUNDS),
    memoryMib: 512,
    diskGib: 4,
    create: (onCreated) =>
      world.core.create({
        sshKey: world.sshKey,
        allowedPorts: [22],
        node,
        ipv6Prefix: PREFIX,
        onCreated,
      }),
  });
}

await playInWorld(scenario);
await writeFile(FIGURES_FILE, JSON.stringify(figures.rows));
