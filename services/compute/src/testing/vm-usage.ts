// What a compute node says that its machines take, beside what they really took. Run by usage/usage.vm.e2e.test.ts.
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hostnameOf } from '@skerry/protocol';
import type { GuestUsageListView, GuestUsageView } from '@skerry/protocol/api/compute/usage';
import { askTiny, createTiny, storeTiny } from './tiny-guest.ts';
import { isPhase, playInWorld, READY_MS, STOP_MS, step, type VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

const MIB = 1024 ** 2;
/** Much more than a machine takes by itself meanwhile. */
const WRITTEN_MIB = 48;
const TOUCHED_MIB = 32;
const SENT_MIB = 6;
const RECEIVED_MIB = 1;
const BURNT_SECONDS = 4;

/** What goes on in the guest when nobody listens any more. */
const APART = '< /dev/null > /dev/null 2>&1';

async function urlOf(world: VmWorld): Promise<string> {
  return (await world.core.listNodes())[0]!.content.url;
}

async function readAll(world: VmWorld): Promise<GuestUsageListView> {
  const answer = await fetch(`${await urlOf(world)}/about/usage/guests`);
  assert.equal(answer.status, 200);
  return (await answer.json()) as GuestUsageListView;
}

async function read(world: VmWorld, id: string): Promise<GuestUsageView> {
  const { guests } = await readAll(world);
  const found = guests.find((one) => one.kind === 'instance' && one.item_hash === id);
  assert.ok(found, 'the instance is listed');
  return found;
}

/** Waits for a reading of which something is so: the node may have read a moment before it was asked. */
async function untilRead(
  world: VmWorld,
  id: string,
  what: string,
  isSo: (usage: GuestUsageView) => boolean,
): Promise<GuestUsageView> {
  let last: GuestUsageView | undefined;
  await until(what, READY_MS, async () => {
    last = await read(world, id);
    return isSo(last);
  });
  return last!;
}

/** What the kernel says itself. */
async function readRssBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(status)![1]) * 1024;
}

async function checkGrowth(world: VmWorld, id: string, ipv6: string, neighbour: string): Promise<void> {
  const [before, idleBefore] = [await read(world, id), await read(world, neighbour)];
  step('the processor: the busy machine is told apart from the one beside it');
  await askTiny(ipv6, `yes ${APART} & echo $! > /tmp/burning`);
  const burnt = await untilRead(
    world,
    id,
    `it took ${BURNT_SECONDS} s`,
    ({ cpu }) => cpu.seconds! > before.cpu.seconds! + BURNT_SECONDS,
  );
  const idle = await read(world, neighbour);
  await askTiny(ipv6, 'kill $(cat /tmp/burning)');
  assert.ok(idle.cpu.seconds! - idleBefore.cpu.seconds! < (burnt.cpu.seconds! - before.cpu.seconds!) / 2);

  step('memory, disk and network: as much as was written, touched and sent');
  await askTiny(
    ipv6,
    `mount -t tmpfs tmpfs /tmp; dd if=/dev/urandom of=/tmp/touched bs=1M count=${TOUCHED_MIB}; dd if=/dev/urandom of=/root/written bs=1M count=${WRITTEN_MIB}; sync`,
  );
  const zeros = await askTiny(ipv6, `yes | head -c ${SENT_MIB * MIB}`);
  assert.ok(zeros.length >= SENT_MIB * MIB - 1);
  const comment = `# ${'x'.repeat(97)}\n`;
  await askTiny(ipv6, comment.repeat(Math.ceil((RECEIVED_MIB * MIB) / comment.length)));
  const after = await untilRead(
    world,
    id,
    'all of it is counted',
    ({ disk, network }) =>
      disk!.bytes >= before.disk!.bytes + WRITTEN_MIB * MIB &&
      network!.out_bytes >= before.network!.out_bytes + SENT_MIB * MIB &&
      network!.in_bytes >= before.network!.in_bytes + RECEIVED_MIB * MIB,
  );
  const packets = (name: 'in_packets' | 'out_packets') => after.network![name] - before.network![name];
  assert.ok(packets('out_packets') > 100 && packets('in_packets') > 100);
  const { blocks } = await stat(join(world.dataDir, 'instances', id, 'disk.qcow2'));
  assert.equal((await read(world, id)).disk!.bytes, blocks * 512);
  const rssBytes = await readRssBytes(await world.qemuPid(id));
  // Of libraries that both machines have, each has half.
  const { memory } = await read(world, id);
  assert.ok(
    memory.bytes! > rssBytes * 0.7 && memory.bytes! < rssBytes * 1.1,
    `${memory.bytes} of ${rssBytes}`,
  );
  assert.ok(memory.bytes! > TOUCHED_MIB * MIB);
}

async function checkMetrics(world: VmWorld, ids: readonly string[]): Promise<void> {
  step('the same in the form of Prometheus, and to nobody else');
  const url = await urlOf(world);
  const text = await (await fetch(`${url}/metrics`)).text();
  const valueIn = (name: string, labels: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`skerry_compute_${name}{${labels}}`))
        ?.split(' ')[1],
    );
  for (const id of ids) {
    const label = `instance="${id}"`;
    assert.ok(valueIn('instance_cpu_seconds_total', label) > 0);
    assert.ok(valueIn('instance_memory_bytes', label) > 10 * MIB);
    assert.equal(valueIn('instance_memory_granted_bytes', label), 128 * MIB);
    assert.ok(valueIn('instance_disk_bytes', label) > 0);
    assert.ok(valueIn('instance_network_bytes_total', `${label},direction="out"`) > 0);
  }
  assert.match(text, /^skerry_compute_instances_running 2$/m);
  for (const path of ['/metrics', '/about/usage/guests']) {
    const relayed = await fetch(`${url}${path}`, { headers: { 'x-forwarded-for': '203.0.113.7' } });
    assert.equal(relayed.status, 403, path);
  }
}

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  const image = await storeTiny(world);
  const [busy, idle] = [
    await createTiny(world, 'busy', image, node),
    await createTiny(world, 'idle', image, node),
  ];
  const begunMs = Date.now();
  for (const { instance_id: id } of [busy, idle]) await core.until(id, isPhase('running'), READY_MS);
  const { instance_id: id, ipv6 } = busy;
  const first = await untilRead(world, id, 'it runs', ({ phase }) => phase === 'running');
  assert.equal(first.host_name, hostnameOf(id));
  assert.equal(first.owner?.toLowerCase(), core.owner.address.toLowerCase());
  assert.deepEqual([first.cpu.granted, first.memory.granted_bytes], [1, 128 * MIB]);
  assert.equal(first.disk?.granted_bytes, 1024 * MIB);
  // Times of processes are told in whole seconds since the computer was started.
  assert.ok(
    Math.abs(Date.parse(first.since!) - begunMs) < READY_MS && Date.parse(first.since!) < Date.now() + 1_000,
  );

  await checkGrowth(world, id, ipv6, idle.instance_id);
  await checkMetrics(world, [id, idle.instance_id]);

  step('kill -9 of the node: the next process tells of the same machines');
  const before = await read(world, id);
  await world.killNode();
  await world.startNode();
  await until('the node is where it says now', READY_MS, () =>
    readAll(world).then(
      () => true,
      () => false,
    ),
  );
  const adopted = await untilRead(world, id, 'it is adopted', ({ since }) => since !== null);
  assert.equal(adopted.since, before.since);
  assert.ok(adopted.cpu.seconds! >= before.cpu.seconds!);
  assert.ok(adopted.network!.out_bytes >= before.network!.out_bytes);

  step('one that is off takes its disk only; one that is forgotten nothing');
  await core.control(id, 'stop');
  await core.until(id, isPhase('stopped'), STOP_MS);
  const off = await untilRead(world, id, 'it is off', ({ since }) => since === null);
  assert.deepEqual([off.cpu.seconds, off.memory.bytes, off.phase], [null, null, 'stopped']);
  assert.ok(off.disk!.bytes >= WRITTEN_MIB * MIB);
  await core.client.forget([id]);
  await until('it is gone', STOP_MS, async () =>
    (await readAll(world)).guests.every((one) => one.item_hash !== id),
  );
}

await playInWorld(scenario);
