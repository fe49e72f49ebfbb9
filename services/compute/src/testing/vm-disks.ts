// What an owner does with the disk of a real machine. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { isPhase, playInWorld, READY_MS, SOON_MS, step, type VmWorld } from './vm-world.ts';

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  const { instance_id: id, ipv6 } = await world.create('disks', node);
  await core.until(id, isPhase('running'), READY_MS);
  const machine = `/control/machine/${id}`;
  const again = async () => {
    await core.until(id, isPhase('starting'), SOON_MS).catch(() => {});
    await core.until(id, isPhase('running'), READY_MS);
  };
  const read = async () => (await world.ssh(ipv6, 'cat /root/mark 2>/dev/null || echo none')).trim();

  step('a snapshot of a machine that runs, and back to it');
  await world.ssh(ipv6, 'echo one > /root/mark; sync');
  await world.ask('POST', `${machine}/snapshots`, { name: 'one' });
  await world.ssh(ipv6, 'echo two > /root/mark; sync');
  await world.ask('POST', `${machine}/restore`, { snapshot: 'one' });
  await again();
  assert.equal(await read(), 'one');

  step('a backup of a machine that runs');
  let sinceMs = Date.now();
  const backup = await world.backUp(id);
  step(`${backup.length} bytes in ${Date.now() - sinceMs} ms`);

  step('reinstall: nothing of before is left; the old disk is put aside');
  await world.ask('POST', `${machine}/reinstall`);
  await again();
  assert.equal(await read(), 'none');

  step('restore from the file');
  sinceMs = Date.now();
  await world.ask('POST', `${machine}/restore`, backup);
  await again();
  step(`restored and up in ${Date.now() - sinceMs} ms`);
  assert.equal(await read(), 'one');

  step('the same disk, stored on the network, is the image of another machine');
  const file = createHash('sha256').update(backup).digest('hex');
  await core.client.storeFile(new Blob([backup as BlobPart]), 'disk.qcow2', file);
  const twin = await world.create('twin', node, file);
  await core.until(twin.instance_id, isPhase('running'), READY_MS);
  assert.equal((await world.ssh(twin.ipv6, 'cat /root/mark')).trim(), 'one');
  await core.control(twin.instance_id, 'stop');

  step('a file that is no disk changes nothing');
  await assert.rejects(
    world.ask('POST', `${machine}/restore`, new TextEncoder().encode('no disk '.repeat(1_000))),
    /INVALID_IMAGE/,
  );
  assert.equal(await read(), 'one');

  step('stopped by its owner at the node; then started by a message');
  await world.ask('POST', `${machine}/stop`);
  await core.until(id, isPhase('stopped'), SOON_MS);
  assert.equal((await core.get(id)).reason?.code, 'OWNER_STOPPED');
  await world.ask('POST', `${machine}/snapshots`, { name: 'off' });
  await core.control(id, 'restart');
  await core.until(id, isPhase('running'), READY_MS);
  assert.equal(await read(), 'one');
}

await playInWorld(scenario);
