// The life of virtual machines under one compute node, in a network namespace of its own. Run by vm.e2e.test.ts.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstanceView } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { macOf, networkNames, tapName } from '../network/names.ts';
import { NodeNetwork } from '../network/network.ts';
import { type AnnouncedNode, RealCore } from './real-core.ts';
import { connects, until } from './wait.ts';

const READY_MS = 300_000;
const STOP_MS = 150_000;
const SOON_MS = 20_000;
const SSH_MS = 60_000;
/** Long enough for an answer under load; a firewall that drops never answers. */
const ANSWER_MS = 3_000;

const [cacheDir = ''] = process.argv.slice(2);
const directory = await mkdtemp(join(tmpdir(), 'skerry-vm-'));
const dataDir = join(directory, 'data');
const key = join(directory, 'id');
const OTHER_NODE = { nodeId: 'e'.repeat(64), address: `0x${'e'.repeat(40)}` };
const PREFIX = 'fd5c:e771:0:1::/64';

let node: ChildProcess | undefined;
await run('ip', ['link', 'set', 'lo', 'up']);
const core = await new RealCore().start();

function step(text: string): void {
  console.log(`[${(process.uptime()).toFixed(1)} s] ${text}`);
}

async function startNode(): Promise<void> {
  const environment = {
    ...process.env,
    SKERRY_COMPUTE_CORE_URL: core.url,
    SKERRY_COMPUTE_DATA_DIR: dataDir,
    SKERRY_COMPUTE_CACHE_DIR: cacheDir,
    SKERRY_COMPUTE_IPV6_PREFIX: PREFIX,
    // By number: this network namespace may have nobody to ask for a name.
    SKERRY_COMPUTE_HOST: '127.0.0.1',
    SKERRY_COMPUTE_PORT: '0',
  };
  node = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await once(node, 'message');
}

async function killNode(): Promise<void> {
  node?.kill('SIGKILL');
  if (node) await once(node, 'exit');
  node = undefined;
}

interface ExecutionView {
  running: boolean;
  networking: { ipv6_ip: string };
}

async function readExecutions(): Promise<Record<string, ExecutionView>> {
  const [node] = await core.listNodes();
  return (await (await fetch(`${node!.content.url}/v2/about/executions/list`)).json()) as Record<
    string,
    ExecutionView
  >;
}

function ssh(address: string, command: string): Promise<string> {
  const options = [
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'ConnectTimeout=30',
  ];
  return run('ssh', ['-i', key, ...options.flatMap((one) => ['-o', one]), `root@${address}`, command], {
    timeoutMs: SSH_MS,
  });
}

const isPhase = (phase: string) => (view: InstanceView) => view.phase === phase;
const qemuPid = async (id: string) =>
  (await readFile(join(dataDir, 'instances', id, 'qemu.pid'), 'utf8')).trim();

async function scenario(): Promise<void> {
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a "quoted" name', '-f', key]);
  const sshKey = (await readFile(`${key}.pub`, 'utf8')).trim();

  await startNode();
  await until('the node is announced', SOON_MS, async () => (await core.listNodes()).length === 1);
  const node = (await core.listNodes())[0]!;
  const { nodeId, content } = node;
  assert.ok(content.capacity.cpu > 0);
  step('the node is announced');

  const create = (name: string, on: Pick<AnnouncedNode, 'nodeId' | 'address'>) =>
    core.create({ name, sshKey, allowedPorts: [22], node: on, ipv6Prefix: PREFIX });
  let sinceMs = Date.now();
  const { instance_id: first, ipv6: a } = await create('first', node);
  const { instance_id: elsewhere } = await create('elsewhere', OTHER_NODE);
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

  const [execution] = Object.entries(await readExecutions());
  assert.equal(execution?.[0], first);
  assert.equal(execution?.[1].running, true);
  assert.equal(execution?.[1].networking.ipv6_ip, a);
  const names = networkNames(nodeId);
  const network = new NodeNetwork(names, PREFIX);
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
  const { instance_id: second, ipv6: b } = await create('second', node);
  await core.until(second, isPhase('running'), READY_MS);
  await checkIsolation(a, b);

  step('kill -9 of the node; its guests go on, and the next process takes them over');
  const pid = await qemuPid(first);
  await killNode();
  assert.equal((await ssh(a, 'echo alive')).trim(), 'alive');
  await core.allow(first, [22, 8000]);
  await startNode();
  await until('the next process applies what changed meanwhile', SOON_MS, () => connects(a, 8000, ANSWER_MS));
  assert.equal(await qemuPid(first), pid, 'the same QEMU');
  assert.equal((await core.get(first)).phase, 'running');

  step('restart');
  await ssh(a, 'echo kept > /root/mark; sync');
  sinceMs = Date.now();
  const restartId = await core.control(first, 'restart');
  await core.until(first, isPhase('stopping'), SOON_MS);
  await core.until(first, isPhase('running'), STOP_MS + READY_MS);
  step(`restarted in ${Date.now() - sinceMs} ms`);
  assert.equal((await core.listStatuses(first)).at(-1)?.restart_id, restartId);
  assert.notEqual(await qemuPid(first), pid, 'another QEMU');
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
  await killNode();
  await startNode();
  await core.until(first, isPhase('running'), READY_MS);
  assert.equal((await ssh(a, 'cat /root/mark')).trim(), 'kept');

  step('QEMU dies; the node starts it again');
  process.kill(Number(await qemuPid(first)), 'SIGKILL');
  await core.until(first, (view) => view.phase !== 'running', SOON_MS);
  assert.equal((await core.get(first)).reason?.code, 'VM_START_FAILED');
  await core.until(first, isPhase('running'), READY_MS);

  step('the guest powers itself off while the node is away');
  await killNode();
  await ssh(b, 'systemctl poweroff').catch(() => {});
  await startNode();
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
async function checkIsolation(a: string, b: string): Promise<void> {
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
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    await once(server.stdout!, 'data');
    assert.equal(await connects('fd5c:e771:ffff::1', 9123, ANSWER_MS), true);
    assert.equal(
      (await guestConnects('fd5c:e771:ffff::1', 9123)).trim(),
      'no',
      'a guest does not reach services of the node',
    );
    server.kill();
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

async function endMachines(): Promise<void> {
  for (const name of (
    await run('sh', [
      '-c',
      `ls -d ${dataDir}/instances/*/qemu.pid ${dataDir}/released/*/qemu.pid 2>/dev/null; true`,
    ])
  )
    .trim()
    .split('\n')) {
    const pid = Number(await readFile(name, 'utf8').catch(() => ''));
    const line = pid > 1 ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') : '';
    if (line.includes('qemu-system') && line.includes(dataDir)) process.kill(pid, 'SIGKILL');
  }
}

try {
  await scenario();
  step('done');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  node?.kill('SIGTERM');
  if (node) await once(node, 'exit');
  await endMachines();
  await core[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
}
