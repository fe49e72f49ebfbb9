// A guest that takes whatever it can get, beside one that wants nothing but to be served. Run by
// instances/hostile.strangers.vm.e2e.test.ts.
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GuestUsageListView } from '@skerry/protocol/api/compute/usage';
import { findTrees } from '../groups/trees.ts';
import { readProcessUsage } from '../host/process-usage.ts';
import { CONSOLE_FILE_BYTES_MAX } from '../instances/console/console-log.ts';
import { guestLimits } from '../vm/guest-bounds.ts';
import { askTiny, createTiny, storeTiny } from './tiny-guest.ts';
import { isPhase, playInWorld, READY_MS, SOON_MS, step, type VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

/** Much more than a kernel takes, much less than a processor gives. */
const ENTROPY_SECONDS = 2;
const ENTROPY_BYTES_MAX = 10 * 4_096 * ENTROPY_SECONDS;

/** What each guest may write in a second, in this scenario. */
const DISK_RATE_MIB = 4;
const CALM_WRITES_MIB = 12;
/** From each side, at once: what is under way is written to the end, also when its writer is gone. */
const SIDE_MIB = 4;
const SIDES = 4;
const CALM_CPU_SECONDS = 3;
/** Of a group's quota (control-group.ts). */
const CPU_PERIOD_US = 100_000;
const MIB = 1024 ** 2;
/** Where the root file system of the tiny guest ends (tiny-guest.ts). */
const FREE_FROM_MIB = 768;
/** Where both want all that they can get, one gets what the other gets: tables of its disk, and QEMU's own threads, are no more than this. */
const PARTS_MAX = 1.5;

/** By itself, then by what it starts with, before it is up. An emulated guest takes three times as long for each boot as for its first. */
const RESTARTS = 2;
const RESTARTING = 'reboot: Restarting system';
/** What a node tells of a guest that starts itself again, without end: see docs/security.md. */
const STATUSES_MAX = 4;

interface Guests {
  readonly hostile: { readonly id: string; readonly ipv6: string };
  readonly calm: { readonly id: string; readonly ipv6: string };
}

/** The calm guest answers, the node answers of it, and of the hostile one. */
async function checkOthers(world: VmWorld, { hostile, calm }: Guests): Promise<void> {
  assert.equal(await askTiny(calm.ipv6, 'echo served'), 'served');
  const url = (await world.core.listNodes())[0]!.content.url;
  const { guests } = (await (await fetch(`${url}/about/usage/guests`)).json()) as GuestUsageListView;
  assert.equal(guests.filter(({ kind }) => kind === 'instance').length, 2);
  for (const { id } of [hostile, calm])
    await world.ask<unknown[]>('GET', `/control/machine/${id}/logs?limit=10`);
}

async function checkConsole(world: VmWorld, guests: Guests): Promise<void> {
  step('its console without end: two files of their size, and its last words can be read');
  const { id, ipv6 } = guests.hostile;
  const directory = join(world.dataDir, 'instances', id);
  await askTiny(ipv6, 'yes "a line on the console" < /dev/null > /dev/console 2>&1 & echo $! > /tmp/flood');
  await until('the first file is full', READY_MS, async () =>
    (await readdir(directory)).includes('console.1.log'),
  );
  await checkOthers(world, guests);
  for (const name of ['console.log', 'console.1.log']) {
    const { size } = await stat(join(directory, name));
    assert.ok(size < 2 * CONSOLE_FILE_BYTES_MAX, `${name}: ${size}`);
  }
  await askTiny(ipv6, 'kill $(cat /tmp/flood)');
}

async function checkEntropy({ hostile: { ipv6 } }: Guests): Promise<void> {
  step('entropy without end: it gets what a kernel needs');
  const name = await askTiny(ipv6, 'cat /sys/class/misc/hw_random/rng_current');
  assert.match(name, /virtio/);
  const counted = await askTiny(
    ipv6,
    // The first of it takes as long as it takes.
    `mknod /tmp/rng c 10 183
    dd if=/tmp/rng of=/tmp/random bs=64 count=1 2> /dev/null
    timeout ${ENTROPY_SECONDS} dd if=/tmp/rng bs=64 2> /dev/null >> /tmp/random
    wc -c < /tmp/random
    rm /tmp/random`,
  );
  const bytes = Number(counted.split('\n').at(-1));
  step(`${bytes} random bytes in ${ENTROPY_SECONDS} s`);
  assert.ok(bytes > 0 && bytes < ENTROPY_BYTES_MAX, `${counted}`);
}

/** A field of /proc/PID/io (proc(5)): of all threads. */
async function bytesWritten(pid: number): Promise<number> {
  return Number(/^wchar: ([0-9]+)$/m.exec(await readFile(`/proc/${pid}/io`, 'utf8'))![1]);
}

interface Gained {
  readonly hostile: number;
  readonly calm: number;
  readonly seconds: number;
}

/**
 * Waits until what the QEMU of each has got of something is fair. Both are at it all the time: what it takes to begin, on a machine that
 * others keep busy, is no part of it. And it is looked at for as long as it takes: in a few seconds a kernel, and a disk, give one as much as
 * twice of what the other gets, either way, by what else runs beside each. Rejects where it does not become so.
 */
async function untilFair(
  world: VmWorld,
  guests: Guests,
  measure: (pid: number) => Promise<number>,
  isFair: (gained: Gained) => boolean,
): Promise<void> {
  const pids = [await world.qemuPid(guests.hostile.id), await world.qemuPid(guests.calm.id)];
  const read = () => Promise.all(pids.map(measure));
  const begunMs = performance.now();
  const before = await read();
  let gained: Gained = { hostile: 0, calm: 0, seconds: 0 };
  try {
    await until('each gets its part', SOON_MS, async () => {
      const [hostile = 0, calm = 0] = (await read()).map((value, index) => value - before[index]!);
      gained = { hostile, calm, seconds: (performance.now() - begunMs) / 1000 };
      return isFair(gained);
    });
  } finally {
    const { hostile, calm, seconds } = gained;
    const short = (value: number) => Number(value.toFixed(2));
    const times = calm > 0 ? `${short(hostile / calm)} times as much ` : '';
    step(`it got ${short(hostile)}, the calm one ${short(calm)}: ${times}in ${short(seconds)} s`);
  }
}

/** Has a guest do these all the time, beside what it does already, until `endAll`. */
const beginAll = ({ ipv6 }: Guests['calm'], works: readonly string[]): Promise<string> =>
  askTiny(
    ipv6,
    works
      .map((work) => `(while :; do ${work}; done) < /dev/null > /dev/null 2>&1 & echo $! >> /tmp/busy`)
      .join('\n'),
  );

const endAll = ({ ipv6 }: Guests['calm']): Promise<string> =>
  askTiny(ipv6, 'kill $(cat /tmp/busy); rm /tmp/busy');

async function checkShares(world: VmWorld, guests: Guests): Promise<void> {
  step('its disk from all sides, and its processor: the calm one gets as much as it');
  const { hostile, calm } = guests;
  const writes = Array.from({ length: SIDES }, (_, side) => {
    const at = FREE_FROM_MIB + 2 * SIDE_MIB * side;
    return `dd if=/dev/zero of=/dev/vda bs=1M seek=${at} count=${SIDE_MIB} conv=fsync 2>/dev/null`;
  });
  for (const guest of [hostile, calm]) await beginAll(guest, writes);
  await untilFair(
    world,
    guests,
    bytesWritten,
    (got) =>
      got.calm >= CALM_WRITES_MIB * MIB &&
      got.hostile < PARTS_MAX * Math.min(got.calm, DISK_RATE_MIB * MIB * got.seconds),
  );
  await endAll(calm);

  const loops = Array.from({ length: 8 }, () => ':');
  for (const guest of [hostile, calm]) await beginAll(guest, loops);
  const cpuSeconds = async (pid: number) => (await readProcessUsage(pid))!.cpuSeconds;
  await untilFair(
    world,
    guests,
    cpuSeconds,
    (got) => got.calm >= CALM_CPU_SECONDS && got.hostile < PARTS_MAX * got.calm,
  );
  for (const guest of [hostile, calm]) await endAll(guest);
}

/** The group of a guest's QEMU in a tree, and that it is one of its own: this process is in what is above it, as in the node, beside it. */
async function groupOf(
  world: VmWorld,
  { id }: Guests['calm'],
  name: 'memory' | 'cpu' | 'pids',
): Promise<string> {
  const trees = findTrees()!;
  const groups = (await readFile(`/proc/${await world.qemuPid(id)}/cgroup`, 'utf8')).split('\n');
  const isOf = (line: string) =>
    line
      .split(':')[1]
      ?.split(',')
      .includes(trees.version === 1 ? name : '');
  const path = groups.find(isOf)?.split(':')[2] ?? '';
  assert.match(path, /-guests\/[0-9a-f]{32}$/);
  return join(trees.version === 1 ? trees.bases[name] : trees.base, ...path.split('/').slice(-2));
}

async function checkGroup(world: VmWorld, { hostile, calm }: Guests): Promise<void> {
  step('its QEMU is in a control group of its own, whose memory is its own and what QEMU takes');
  const isFirst = findTrees()!.version === 1;
  const [memory, cpu] = [await groupOf(world, hostile, 'memory'), await groupOf(world, hostile, 'cpu')];
  await groupOf(world, hostile, 'pids');
  const read = async (group: string, first: string, second: string) =>
    (await readFile(join(group, isFirst ? first : second), 'utf8')).trim();
  const limits = guestLimits({ cpu: 1, memoryMib: 128 }, 'tcg');
  assert.equal(Number(await read(memory, 'memory.limit_in_bytes', 'memory.max')), limits.memoryBytes);
  const quota = Number.parseInt(await read(cpu, 'cpu.cfs_quota_us', 'cpu.max'), 10);
  assert.ok(quota > 0 && quota <= limits.cpus * CPU_PERIOD_US, `${quota}`);
  const weights = [cpu, await groupOf(world, calm, 'cpu')].map((group) =>
    read(group, 'cpu.shares', 'cpu.weight'),
  );
  const [own, others] = await Promise.all(weights);
  assert.equal(own, others, 'one weighs what the other does');
}

async function checkMemory(world: VmWorld, guests: Guests): Promise<void> {
  step('its memory to the last page: its kernel ends what takes it, not the node');
  const { id, ipv6 } = guests.hostile;
  const pid = await world.qemuPid(id);
  // What takes most of it is what its kernel ends.
  for (const mib of [64, 96, 128, 256])
    await askTiny(ipv6, `dd if=/dev/zero of=/dev/null bs=${mib}M count=1 2> /dev/null`);
  await checkOthers(world, guests);
  assert.equal(await world.qemuPid(id), pid);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const rssMib = Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(status)![1]) / 1024;
  step(`its QEMU has ${rssMib.toFixed(0)} MiB, of which 128 are its memory`);
  // Its memory, QEMU, and code that is kept translated (vm/command-line.ts).
  assert.ok(rssMib < 128 + 128 + 128, `${rssMib} MiB`);
}

async function checkReboots(world: VmWorld, guests: Guests): Promise<void> {
  step('it starts itself again without end: others are served, and the network hears little of it');
  const { id, ipv6 } = guests.hostile;
  const { core } = world;
  const told = (await core.listStatuses(id)).length;
  const again = `#!/bin/sh\\n/bin/busybox reboot -f\\n`;
  const script = `printf '${again}' > /sbin/again; chmod +x /sbin/again; mv /sbin/again /sbin/init; sync; reboot -f`;
  // It answers no more.
  await askTiny(ipv6, script, 10_000).catch(() => {});
  const restarts = async () => {
    const lines = await world.ask<{ MESSAGE: string }[]>('GET', `/control/machine/${id}/logs?limit=100`);
    return lines.filter(({ MESSAGE }) => MESSAGE.includes(RESTARTING)).length;
  };
  await until('it began again and again', READY_MS, async () => (await restarts()) >= RESTARTS);
  await checkOthers(world, guests);
  const more = (await core.listStatuses(id)).length - told;
  assert.ok(more <= STATUSES_MAX, `${more} statuses of ${RESTARTS} restarts`);
}

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  const image = await storeTiny(world);
  const created = [
    await createTiny(world, 'hostile', image, node),
    await createTiny(world, 'calm', image, node),
  ];
  const [hostile, calm] = created.map(({ instance_id: id, ipv6 }) => ({ id, ipv6 }));
  const guests = { hostile: hostile!, calm: calm! };
  for (const { id } of [hostile!, calm!]) await core.until(id, isPhase('running'), READY_MS);
  await askTiny(hostile!.ipv6, 'mount -t tmpfs tmpfs /tmp');
  await checkEntropy(guests);
  await checkConsole(world, guests);
  await checkGroup(world, guests);
  await checkShares(world, guests);
  await checkMemory(world, guests);
  await checkReboots(world, guests);
  await until('the calm guest runs as before', SOON_MS, async () =>
    isPhase('running')(await core.get(calm!.id)),
  );
}

await playInWorld(scenario, { settings: { SKERRY_COMPUTE_GUEST_DISK_RATE_MIB: String(DISK_RATE_MIB) } });
