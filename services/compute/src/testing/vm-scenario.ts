// The life of virtual machines under one compute node, in a network namespace of its own. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { run } from '../host/run.ts';
import { macOf, networkNames, tapName } from '../network/names.ts';
import { NodeNetwork } from '../network/network.ts';
import {
  ANSWER_MS,
  isPhase,
  PREFIX,
  playInWorld,
  READY_MS,
  SOON_MS,
  SSH_MS,
  STOP_MS,
  step,
  type VmWorld,
} from './vm-world.ts';
import { connects, until } from './wait.ts';

const OTHER_NODE = { nodeId: 'e'.repeat(64), address: `0x${'e'.repeat(40)}` };

interface ExecutionView {
  running: boolean;
  networking: { ipv6_ip: string };
}

async function readExecutions(url: string): Promise<Record<string, ExecutionView>> {
  return (await (await fetch(`${url}/v2/about/executions/list`)).json()) as Record<string, ExecutionView>;
}

async function scenario(world: VmWorld): Promise<void> {
  const { core } = world;
  const ssh = world.ssh.bind(world);
  await world.startNode();
  const node = await world.announced();
  const { nodeId, content } = node;
  assert.ok(content.capacity.cpu > 0);
  step('the node is announced');

  let sinceMs = Date.now();
  const { instance_id: first, ipv6: a } = await world.create('first', node);
  const { instance_id: elsewhere } = await world.create('elsewhere', OTHER_NODE);
  await core.until(first, isPhase('running'), READY_MS);
  step(`created -> running in ${Date.now() - sinceMs} ms`);
  assert.match(
    await ssh(a, 'uname -a; hostname; cloud-init status; df -m / | tail -1; ip -6 -o addr show eth0'),
    new RegExp(`Linux .*\n.*-.*\nstatus: done\n[^]*${a}/124`),
  );
  assert.ok(
    Number((await ssh(a, "df -m / | awk 'NR==2 {print $2}'")).trim()) > 3_500,
    'the root file system grew to the disk',
  );
  assert.equal((await ssh(a, 'cat /root/.ssh/authorized_keys')).trim().split('\n').length, 1);
  assert.equal((await ssh(a, 'systemctl --failed --no-legend --plain')).trim(), '', 'no unit failed');
  assert.equal((await core.get(elsewhere)).phase, 'scheduled', 'an instance of another node is not touched');

  const [execution] = Object.entries(await readExecutions(content.url));
  assert.equal(execution?.[0], first);
  assert.equal(execution?.[1].running, true);
  assert.equal(execution?.[1].networking.ipv6_ip, a);
  const names = networkNames(nodeId);
  const network = new NodeNetwork({
    names,
    prefix: PREFIX,
    ipv4Pool: '172.16.0.0/20',
    lanOpen: false,
    openNetworks: [],
    guestConnections: 0,
    guestMbit: 0,
  });
  const isThere = () => network.answers(tapName(names, first), a, macOf(first));
  assert.equal(await isThere(), true, 'a guest that says nothing would be seen to be there');

  step('firewall');
  await ssh(a, 'systemd-run --quiet --unit=web python3 -m http.server --bind :: 8000');
  await until('the server listens', SSH_MS, async () => (await ssh(a, 'ss -ltn')).includes(':8000'));
  assert.equal(await connects(a, 8000, ANSWER_MS), false, 'a port that is not allowed is closed');
  sinceMs = Date.now();
  await core.allow(first, [22, 8000]);
  await until('the port opens', SOON_MS, () => connects(a, 8000, ANSWER_MS));
  step(`a port opened in ${Date.now() - sinceMs} ms`);
  await core.allow(first, [22]);
  await until('the port closes', SOON_MS, async () => !(await connects(a, 8000, ANSWER_MS)));
  assert.equal(await connects(a, 22, ANSWER_MS), true);

  step('a second guest, a third machine');
  const { instance_id: second, ipv6: b } = await world.create('second', node);
  await core.until(second, isPhase('running'), READY_MS);
  await checkIsolation(world, a, b);

  step('kill -9 of the node; its guests go on, and the next process takes them over');
  const pid = await world.qemuPid(first);
  await world.killNode();
  assert.equal((await ssh(a, 'echo alive')).trim(), 'alive');
  await core.allow(first, [22, 8000]);
  await world.startNode();
  await until('the next process applies what changed meanwhile', SOON_MS, () => connects(a, 8000, ANSWER_MS));
  assert.equal(await world.qemuPid(first), pid, 'the same QEMU');
  assert.equal((await core.get(first)).phase, 'running');

  step('restart');
  await ssh(a, 'echo kept > /root/mark; sync');
  sinceMs = Date.now();
  const restartId = await core.control(first, 'restart');
  await core.until(first, isPhase('stopping'), SOON_MS);
  await core.until(first, isPhase('running'), STOP_MS + READY_MS);
  step(`restarted in ${Date.now() - sinceMs} ms`);
  assert.equal((await core.listStatuses(first)).at(-1)?.restart_id, restartId);
  assert.notEqual(await world.qemuPid(first), pid, 'another QEMU');
  assert.equal((await ssh(a, 'cat /root/mark')).trim(), 'kept');

  step('the core node goes away; stop is heard when it is back');
  await core.stop();
  await core.start();
  sinceMs = Date.now();
  await core.control(first, 'stop');
  await core.until(first, isPhase('stopped'), STOP_MS);
  step(`stopped in ${Date.now() - sinceMs} ms`);
  assert.equal(await connects(a, 22, ANSWER_MS), false);
  assert.equal(await isThere(), false, 'a guest that is off does not answer');

  step('kill -9 of the node while a guest boots');
  await core.control(first, 'start');
  await core.until(first, isPhase('starting'), SOON_MS);
  await world.killNode();
  await world.startNode();
  await core.until(first, isPhase('running'), READY_MS);
  assert.equal((await ssh(a, 'cat /root/mark')).trim(), 'kept');

  step('QEMU dies; the node starts it again');
  process.kill(await world.qemuPid(first), 'SIGKILL');
  await core.until(first, (view) => view.phase !== 'running', SOON_MS);
  assert.equal((await core.get(first)).reason?.code, 'VM_START_FAILED');
  await core.until(first, isPhase('running'), READY_MS);

  step('the guest powers itself off while the node is away');
  await world.killNode();
  await ssh(b, 'systemctl poweroff').catch(() => {});
  await world.startNode();
  await core.until(second, isPhase('stopped'), STOP_MS);
  assert.equal((await core.get(second)).reason?.code, 'GUEST_SHUTDOWN');

  step('the first instance moves to another node; its disk is put aside');
  await core.allocate(first, OTHER_NODE, PREFIX);
  await until(
    'its tap is gone',
    STOP_MS,
    async () => !(await run('ip', ['-o', 'link'])).includes(first.slice(0, 9)),
  );
}

/** From a machine beyond the node, from the node, from one guest to another, and out of a guest with a wrong address. */
async function checkIsolation(world: VmWorld, a: string, b: string): Promise<void> {
  const ssh = world.ssh.bind(world);
  const client = `skc${process.pid}`;
  const far = (program: string, ...args: string[]) => run('ip', ['netns', 'exec', client, program, ...args]);
  await run('ip', ['netns', 'add', client]);
  try {
    await run('ip', ['link', 'add', 'far0', 'type', 'veth', 'peer', 'name', 'near0', 'netns', client]);
    await run('ip', ['-6', 'addr', 'add', 'fd5c:e771:ffff::1/64', 'dev', 'far0', 'nodad']);
    await run('ip', ['link', 'set', 'far0', 'up']);
    await far('ip', 'link', 'set', 'near0', 'up');
    await far('ip', '-6', 'addr', 'add', 'fd5c:e771:ffff::2/64', 'dev', 'near0', 'nodad');
    await far('ip', '-6', 'route', 'add', 'default', 'via', 'fd5c:e771:ffff::1');
    const farConnects = async (port: number) =>
      (
        await far(
          process.execPath,
          '-e',
          `import(${JSON.stringify(join(import.meta.dirname, 'wait.ts'))}).then(async (m) => console.log(await m.connects('${a}', ${port}, ${ANSWER_MS})))`,
        )
      ).trim() === 'true';
    assert.equal(await farConnects(22), true, 'an allowed port is reachable from far');
    assert.equal(await farConnects(8000), false, 'another is not');
    await far('ping', '-6', '-c', '1', '-W', '5', a);

    const guestConnects = (host: string, port: number) =>
      ssh(
        b,
        `timeout 5 python3 -c 'import socket; socket.create_connection(("${host}", ${port}), 3); print("yes")' 2>/dev/null || echo no`,
      );
    assert.equal((await guestConnects(a, 22)).trim(), 'yes', 'a guest reaches another on an allowed port');
    assert.equal((await guestConnects(a, 8000)).trim(), 'no', 'and on no other');
    const server = spawn(
      process.execPath,
      ['-e', "require('net').createServer().listen(9123, '::', () => console.log('up'))"],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    try {
      await awaitOutput(server, 'a service of the node', hear(server, ['stderr']));
      assert.equal(await connects('fd5c:e771:ffff::1', 9123, ANSWER_MS), true);
      assert.equal(
        (await guestConnects('fd5c:e771:ffff::1', 9123)).trim(),
        'no',
        'a guest does not reach services of the node',
      );
    } finally {
      server.kill();
    }
    assert.match(await ssh(b, 'ping -6 -c 1 -W 5 fd5c:e771:ffff::2'), / 0% packet loss/);
    const spoofed = await ssh(
      b,
      `ip -6 addr add ${a.replace(/1$/, '2')}/128 dev eth0 nodad; ping -6 -c 1 -W 3 -I ${a.replace(/1$/, '2')} fd5c:e771:ffff::2; ip -6 addr del ${a.replace(/1$/, '2')}/128 dev eth0; true`,
    );
    assert.match(spoofed, /100% packet loss/, "a guest cannot use another's address");
  } finally {
    await run('ip', ['netns', 'del', client]);
  }
}

await playInWorld(scenario);
