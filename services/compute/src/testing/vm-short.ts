// One virtual machine from its creation to its end, with a restart of its compute node. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import {
  ANSWER_MS,
  isPhase,
  NODE4,
  PREFIX,
  playInWorld,
  READY_MS,
  SOON_MS,
  STOP_MS,
  step,
  type VmWorld,
} from './vm-world.ts';
import { volumesOf } from './volumes.ts';
import { connects, until } from './wait.ts';

/** What the machine begins as: the second argument of this process. */
const [, image = 'debian:12'] = process.argv.slice(2);

/** What the SDKs of the deployed network name by default. */
const SDK_DISK = 'f7e68c568906b4ebcd3cd3c4bfdff96c489cd2a9ef73ba2d7503f244dfd578de';

/** With a volume of each kind. */
const contentOf = async (world: VmWorld) => ({
  allow_amend: false,
  authorized_keys: [world.sshKey],
  resources: { vcpus: 1, memory: 512, seconds: 30 },
  payment: { type: 'credit', chain: 'ETH' },
  environment: { internet: true, aleph_api: true, hypervisor: 'qemu' },
  rootfs: {
    parent: { ref: image === 'debian:12' ? SDK_DISK : image, use_latest: true },
    persistence: 'host',
    size_mib: 3_900,
  },
  volumes: await volumesOf(world),
});

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  let sinceMs = Date.now();
  const { instance_id: id, ipv6 } = await core.createByMessage(await contentOf(world), node, PREFIX);
  await core.until(id, isPhase('running'), READY_MS);
  step(`created -> running in ${Date.now() - sinceMs} ms`);
  assert.match(
    await world.ssh(
      ipv6, // Its last stages may go on after the guest is up.
      'echo kept > /root/mark; hostname; cloud-init status --wait >/dev/null; cloud-init status; ip -6 -o addr show eth0',
    ),
    new RegExp(`.*-.*\nstatus: done\n[^]*${ipv6}/124`),
  );
  const sshPort = await world.hostPort(id, 22);
  const volumes = await world.ssh(
    ipv6,
    'cat /opt/given/said; touch /opt/given/x 2>&1 | grep -o Read-only; for at in /srv/scratch /srv/kept; do mountpoint -q $at && echo at $at | tee $at/said && cat $at/said; done',
  );
  assert.equal(
    volumes,
    `from a volumeRead-only\n${['/srv/scratch', '/srv/kept'].map((at) => `at ${at}\nat ${at}\n`).join('')}`,
  );
  step(`volumes are mounted: ${JSON.stringify(volumes)}`);

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
  assert.equal(await world.hostPort(id, 22), sshPort, 'the same port of the node');
  assert.equal((await world.ssh(NODE4, 'cat /root/mark', sshPort)).trim(), 'kept', 'ssh over IPv4');

  step('a snapshot and a backup of a machine that runs');
  const machine = `/control/machine/${id}`;
  const { snapshots } = await world.ask<{ snapshots: { name: string }[] }>('POST', `${machine}/snapshots`, {
    name: 'before',
  });
  assert.deepEqual(
    snapshots.map(({ name }) => name),
    ['before'],
  );
  const logs = async () =>
    (await world.ask<{ MESSAGE: string }[]>('GET', `${machine}/logs`)).map(({ MESSAGE }) => MESSAGE);
  await world.ssh(ipv6, 'echo a word on the console > /dev/console');
  await until('the console is heard', SOON_MS, async () => (await logs()).includes('a word on the console'));

  sinceMs = Date.now();
  await core.control(id, 'stop');
  await core.until(id, isPhase('stopped'), STOP_MS);
  step(`stopped in ${Date.now() - sinceMs} ms`);
  assert.equal(await connects(ipv6, 22, ANSWER_MS), false);
  assert.ok(
    (await logs()).includes('a word on the console'),
    'what was said is there when the machine is off',
  );
  assert.ok(ipv6.startsWith(PREFIX.slice(0, -'::/64'.length)));
}

await playInWorld(scenario);
