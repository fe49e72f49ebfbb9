// A machine of a node from its creation to a restored disk, with a QEMU and tools that have no rights. Run by
// vm.strangers.vm.e2e.test.ts.
import assert from 'node:assert/strict';
import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { machineUid } from '../host/users.ts';
import { askTiny, createTiny, storeTiny } from './tiny-guest.ts';
import { isPhase, playInWorld, READY_MS, STOP_MS, step, type VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  const { instance_id: id, ipv6 } = await createTiny(world, 'confined', await storeTiny(world), node);
  await core.until(id, isPhase('running'), READY_MS);
  const machine = `/control/machine/${id}`;
  const isMark = (text: string) =>
    until(`the disk holds ${text}`, READY_MS, () =>
      askTiny(ipv6, 'cat /root/mark 2>/dev/null || echo none', 3_000).then(
        (mark) => mark === text,
        () => false,
      ),
    );

  step('M6: the QEMU of a machine of the node');
  const pid = await world.qemuPid(id);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  assert.match(status, new RegExp(`^Uid:\\s+${machineUid(id)}\\s`, 'm'));
  assert.match(status, /^CapEff:\s+0+$/m);
  assert.match(status, /^NoNewPrivs:\s+1$/m);
  assert.equal(await readlink(`/proc/${pid}/root`), join(world.dataDir, 'instances', id));

  step('M6: kill -9 of the node; the next process takes the machine over, and copies its disk while it runs');
  await askTiny(ipv6, 'echo one > /root/mark; sync');
  await world.killNode();
  await world.startNode();
  await until('the node is announced where it is now', READY_MS, () =>
    world.ask('GET', `${machine}/snapshots`).then(
      () => true,
      () => false,
    ),
  );
  const backup = await world.backUp(id);
  assert.equal(await world.qemuPid(id), pid);

  step('M6: snapshots of a machine that is off, and a disk that comes as a file');
  await askTiny(ipv6, 'echo two > /root/mark; sync');
  await world.ask('POST', `${machine}/stop`);
  await core.until(id, isPhase('stopped'), STOP_MS);
  await world.ask('POST', `${machine}/snapshots`, { name: 'off' });
  await world.ask('POST', `${machine}/restore`, backup);
  await isMark('one');
}

await playInWorld(scenario);
