// One virtual machine from its creation to its end, with a restart of its compute node. Run by vm.e2e.test.ts.
import assert from 'node:assert/strict';
import {
  ANSWER_MS,
  isPhase,
  PREFIX,
  playInWorld,
  READY_MS,
  SOON_MS,
  STOP_MS,
  step,
  type VmWorld,
} from './vm-world.ts';
import { connects, until } from './wait.ts';

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  let sinceMs = Date.now();
  const { instance_id: id, ipv6 } = await world.create('short', node);
  await core.until(id, isPhase('running'), READY_MS);
  step(`created -> running in ${Date.now() - sinceMs} ms`);
  assert.match(
    await world.ssh(ipv6, 'echo kept > /root/mark; hostname; cloud-init status; ip -6 -o addr show eth0'),
    new RegExp(`.*-.*\nstatus: done\n[^]*${ipv6}/124`),
  );

  step('kill -9 of the node; its guest goes on, and the next process takes it over');
  const pid = await world.qemuPid(id);
  await world.killNode();
  assert.equal((await world.ssh(ipv6, 'cat /root/mark')).trim(), 'kept');
  await core.allow(id, [22, 8000]);
  await world.startNode();
  await world.ssh(ipv6, 'systemd-run --quiet --unit=web python3 -m http.server --bind :: 8000');
  await until('the next process applies what changed meanwhile', SOON_MS, () =>
    connects(ipv6, 8000, ANSWER_MS),
  );
  assert.equal(await world.qemuPid(id), pid, 'the same QEMU');
  assert.equal((await core.get(id)).phase, 'running');

  sinceMs = Date.now();
  await core.control(id, 'stop');
  await core.until(id, isPhase('stopped'), STOP_MS);
  step(`stopped in ${Date.now() - sinceMs} ms`);
  assert.equal(await connects(ipv6, 22, ANSWER_MS), false);
  assert.ok(ipv6.startsWith(PREFIX.slice(0, -'::/64'.length)));
}

await playInWorld(scenario);
