// A machine of a node from its creation to a restored disk, through the loss of its node, with a QEMU and tools that have no
// rights. Run by vm.strangers.vm.e2e.test.ts, with a guest that boots in a tenth of the time of a distribution.
import assert from 'node:assert/strict';
import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { readConfig } from '@skerry/kit';
import { computeConfig } from '../config.ts';
import { run } from '../host/run.ts';
import { machineUid } from '../host/users.ts';
import { clearLeftNetwork, findLeftMachines } from '../instances/left-machines.ts';
import { powerOffMachines } from '../instances/power-off.ts';
import { askTiny, SHELL_PORT, storeTiny } from './tiny-guest.ts';
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

/** Opened while no node is there to hear of it. */
const MORE_PORT = 8000;

/** What the guest says on its console at the end of each boot. */
const UP = 'the tiny guest is up';

/** As the deployed network's SDKs write it, with a volume of each kind. */
const contentOf = async (world: VmWorld) => ({
  allow_amend: false,
  authorized_keys: [world.sshKey],
  resources: { vcpus: 1, memory: 128, seconds: 30 },
  payment: { type: 'credit', chain: 'ETH' },
  environment: { internet: true, aleph_api: true, hypervisor: 'qemu' },
  rootfs: {
    parent: { ref: await storeTiny(world), use_latest: true },
    persistence: 'host',
    size_mib: 1_024,
  },
  volumes: await volumesOf(world),
});

/** Does what the seed tells a guest to do at each boot, as cloud-init does, and says what is where then. */
const ASK_VOLUMES = `
sed -n 's/.*"bootcmd":\\[\\[\\(.*\\)\\]\\].*/\\1/p' /seed/user-data | sed 's/\\],\\[/\\n/g; s/"//g; s/,/ /g' | sh
cat /opt/given/said; echo
touch /opt/given/x 2>&1 | grep -o Read-only
for at in /srv/scratch /srv/kept; do grep -q " $at ext4 rw" /proc/mounts && echo at $at > $at/said && cat $at/said; done`;
const VOLUMES = 'from a volume\nRead-only\nat /srv/scratch\nat /srv/kept';

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  const { instance_id: id, ipv6 } = await core.createByMessage(await contentOf(world), node, PREFIX);
  await core.allow(id, [22, SHELL_PORT]);
  await core.until(id, isPhase('running'), READY_MS);
  assert.equal(await askTiny(ipv6, ASK_VOLUMES), VOLUMES);
  const shellPort = await world.hostPort(id, SHELL_PORT);
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
  await askTiny(
    ipv6,
    `echo one > /root/mark; sync; nc -ll -p ${MORE_PORT} -e /bin/greet </dev/null >/dev/null 2>&1 &`,
  );
  await world.killNode();
  assert.equal(await askTiny(ipv6, 'cat /root/mark'), 'one', 'it goes on without its node');
  assert.equal(await connects(ipv6, MORE_PORT, ANSWER_MS), false);
  await core.allow(id, [22, SHELL_PORT, MORE_PORT]);
  await world.startNode();
  await until('the next process applies what changed meanwhile', SOON_MS, () =>
    connects(ipv6, MORE_PORT, ANSWER_MS),
  );
  await until('the node is announced where it is now', READY_MS, () =>
    world.ask('GET', `${machine}/snapshots`).then(
      () => true,
      () => false,
    ),
  );
  assert.equal((await core.get(id)).phase, 'running');
  assert.equal(await world.hostPort(id, SHELL_PORT), shellPort, 'the same port of the node');
  assert.equal(await askTiny(NODE4, 'cat /root/mark', undefined, shellPort), 'one', 'over IPv4');
  const backup = await world.backUp(id);
  assert.equal(await world.qemuPid(id), pid);
  const logs = async () =>
    (await world.ask<{ MESSAGE: string }[]>('GET', `${machine}/logs`)).map(({ MESSAGE }) => MESSAGE);
  await askTiny(ipv6, 'echo a word on the console > /dev/console');
  await until('the console is heard', SOON_MS, async () => (await logs()).includes('a word on the console'));

  step('a restart: another QEMU, the same disk');
  const restartId = await core.control(id, 'restart');
  await until('the restart is carried out', READY_MS, async () => {
    const last = (await core.listStatuses(id)).at(-1);
    return last?.phase === 'running' && last.restart_id === restartId;
  });
  await isMark('one');
  assert.notEqual(await world.qemuPid(id), pid);

  step('M6: snapshots of a machine that is off, and a disk that comes as a file');
  await askTiny(ipv6, 'echo two > /root/mark; sync');
  await world.ask('POST', `${machine}/stop`);
  await core.until(id, isPhase('stopped'), STOP_MS);
  assert.equal(await connects(ipv6, SHELL_PORT, ANSWER_MS), false);
  assert.ok((await logs()).includes(UP), 'what was said is there when the machine is off');
  await world.ask('POST', `${machine}/snapshots`, { name: 'off' });
  await world.ask('POST', `${machine}/restore`, backup);
  await isMark('one');

  step('what a killed node leaves is ended and taken away');
  await world.killNode();
  const left = { SKERRY_COMPUTE_DATA_DIR: world.dataDir, SKERRY_COMPUTE_IPV6_PREFIX: PREFIX };
  assert.deepEqual(await findLeftMachines(world.dataDir), [id]);
  assert.deepEqual(await powerOffMachines(world.dataDir, () => {}), [{ instance_id: id, state: 'off' }]);
  await clearLeftNetwork(readConfig(computeConfig, left));
  assert.doesNotMatch(await run('nft', ['list', 'tables']), /skerry_/);
  assert.ok(!(await run('ip', ['-o', 'link'])).includes(id.slice(0, 9)));
}

await playInWorld(scenario);
