// A guest that takes whatever it can get, beside one that wants nothing but to be served. Run by
// instances/hostile.strangers.vm.e2e.test.ts.
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GuestUsageListView } from '@skerry/protocol/api/compute/usage';
import { CONSOLE_FILE_BYTES_MAX } from '../instances/console/console-log.ts';
import { askTiny, createTiny, storeTiny } from './tiny-guest.ts';
import { isPhase, playInWorld, READY_MS, SOON_MS, step, type VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

/** Much more than a kernel takes, much less than a processor gives. */
const ENTROPY_SECONDS = 4;
const ENTROPY_BYTES_MAX = 10 * 4_096 * ENTROPY_SECONDS;

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
    `mknod /tmp/rng c 10 183; timeout ${ENTROPY_SECONDS} dd if=/tmp/rng of=/tmp/random bs=64 2> /dev/null; wc -c < /tmp/random; rm /tmp/random`,
  );
  const bytes = Number(counted.split('\n').at(-1));
  step(`${bytes} random bytes in ${ENTROPY_SECONDS} s`);
  assert.ok(bytes > 0 && bytes < ENTROPY_BYTES_MAX, `${counted}`);
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
  // Its memory, QEMU, and code that is kept translated (vm/command-line.ts).
  assert.ok(rssMib < 128 + 128 + 128, `${rssMib} MiB`);
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
  await checkMemory(world, guests);
  await until('the calm guest runs as before', SOON_MS, async () =>
    isPhase('running')(await core.get(calm!.id)),
  );
}

await playInWorld(scenario);
