// A QEMU that hangs, and records of instances that cannot be read, of real machines. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceView } from '@skerry/protocol';
import { damageSector } from './directory.ts';
import type { AnnouncedNode } from './real-core.ts';
import { askTiny, createTiny, storeTiny } from './tiny-guest.ts';
import { isPhase, PREFIX, playInWorld, READY_MS, SOON_MS, STOP_MS, step, type VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

const OTHER_NODE = { nodeId: 'e'.repeat(64), address: `0x${'e'.repeat(40)}` };
const SAYS_SILENT = /QEMU is running but does not answer/;

const isSilent = ({ phase, reason }: InstanceView) =>
  phase === 'running' && SAYS_SILENT.test(reason?.message ?? '');
const isWell = ({ phase, reason }: InstanceView) => phase === 'running' && reason === null;

async function hang(world: VmWorld, id: string, readMark: () => Promise<string>): Promise<void> {
  step('its QEMU hangs: that is said, and that it goes on');
  const { core } = world;
  const pid = await world.qemuPid(id);
  process.kill(pid, 'SIGSTOP');
  await core.until(id, isSilent, SOON_MS);
  process.kill(pid, 'SIGCONT');
  await core.until(id, isWell, SOON_MS);
  assert.equal(await readMark(), 'first');
  step('it hangs for good: it can be stopped and started all the same');
  process.kill(pid, 'SIGSTOP');
  await core.control(id, 'stop');
  await core.until(id, isPhase('stopped'), STOP_MS);
  await core.control(id, 'start');
  await core.until(id, isWell, READY_MS);
  assert.equal(await readMark(), 'first');
}

async function lose(world: VmWorld, node: AnnouncedNode, id: string): Promise<void> {
  const { core, dataDir } = world;
  const directory = join(dataDir, 'instances', id);
  const record = join(directory, 'vm.json');
  const here = await core.get(id);
  const readMark = () => askTiny(here.ipv6, 'cat /root/mark');
  step('its record cannot be read: the next process takes its machine over, and keeps the file');
  const pid = await world.qemuPid(id);
  await world.killNode();
  await damageSector(record);
  await world.startNode();
  await until('there is another record', SOON_MS, async () =>
    readFile(record, 'utf8').then(
      () => true,
      () => false,
    ),
  );
  assert.equal(await readMark(), 'first');
  assert.equal(await world.qemuPid(id), pid);
  assert.equal(await readlink(`${record}.unreadable`), '/proc/self/mem');
  step('it cannot be read, and the instance moved meanwhile: its machine ends, and its disk is put aside');
  await world.killNode();
  await damageSector(record);
  await core.allocate(id, OTHER_NODE, PREFIX);
  await world.startNode();
  await until('it has left', STOP_MS, async () => !(await readdir(join(dataDir, 'instances'))).includes(id));
  await assert.rejects(readlink(`/proc/${pid}/exe`));
  step('it comes back and finds its disk');
  await core.allocate(id, node, PREFIX);
  await core.until(id, isWell, READY_MS);
  assert.equal(await readMark(), 'first');
}

await playInWorld(async (world) => {
  await world.startNode();
  const node = await world.announced();
  const { instance_id: id, ipv6 } = await createTiny(world, 'one', await storeTiny(world), node);
  await world.core.until(id, isWell, READY_MS);
  const readMark = () => askTiny(ipv6, 'cat /root/mark');
  await askTiny(ipv6, 'echo first > /root/mark; sync');
  await hang(world, id, readMark);
  await lose(world, node, id);
});
