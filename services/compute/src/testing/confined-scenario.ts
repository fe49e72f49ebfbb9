// What QEMU and qemu-img are and see while they run. The machine has an empty disk: its firmware is enough. Run by
// vm/confined.strangers.e2e.test.ts in a network namespace of its own.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { access, mkdir, mkdtemp, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@skerry/kit/testing/until';
import { runImageTool } from '../host/image-tool.ts';
import { run } from '../host/run.ts';
import { machineUid, TOOLS_UID } from '../host/users.ts';
import { DISK_DEVICE } from '../vm/command-line.ts';
import { copyDiskLive } from '../vm/disk-jobs.ts';
import { MACHINE_FILES, type Machine } from '../vm/machine.ts';
import { Vm } from '../vm/vm.ts';

function step(text: string): void {
  console.log(`[${process.uptime().toFixed(1)} s] ${text}`);
}

/** Asserts that a process has no rights, by the text of its /proc/PID/status (proc_pid_status(5)). */
function assertPowerless(status: string, uid: number): void {
  const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1];
  const four = [uid, uid, uid, uid].join('\t');
  assert.deepEqual([field('Uid'), field('Gid')], [four, four]);
  for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb']) assert.equal(Number(field(set)), 0, set);
  assert.equal(field('NoNewPrivs'), '1');
  assert.equal(field('Groups')?.trim().replace(String(uid), ''), '', 'no other groups');
}

async function checkQemu(root: string): Promise<void> {
  const id = randomBytes(32).toString('hex');
  const directory = join(root, 'instances', id);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const disk = join(directory, MACHINE_FILES.disk);
  // As an older node made it: root's.
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '64M']);
  await writeFile(join(directory, MACHINE_FILES.seed), Buffer.alloc(65_536));
  const volumes = ['volume-0.raw', 'volume-1.raw'];
  for (const name of volumes) await writeFile(join(directory, name), Buffer.alloc(65_536), { mode: 0o600 });
  await run('ip', ['tuntap', 'add', 'dev', 'sabcde111111111', 'mode', 'tap']);
  const machine: Machine = {
    ...{ id, machineId: id.slice(0, 32), cpu: 1, memoryMib: 64, boot: 'firmware' },
    ...{ disk: MACHINE_FILES.disk, seed: MACHINE_FILES.seed },
    volumes: volumes.map((file, index) => ({ file, isReadOnly: index === 0, sizeMib: 1, mount: null })),
    ...{ tap: 'sabcde111111111', mac: '52:00:00:00:00:01' },
  };
  const vm = await Vm.start(directory, machine, 'tcg');
  try {
    step(`M6: QEMU ${vm.pid} is a user of its own, without rights, in a root of its own`);
    assertPowerless(await readFile(`/proc/${vm.pid}/status`, 'utf8'), machineUid(id));
    assert.match(await readFile(`/proc/${vm.pid}/status`, 'utf8'), /^Seccomp:\s*2$/m);
    assert.equal(await readlink(`/proc/${vm.pid}/root`), directory);
    await assert.rejects(access(`/proc/${vm.pid}/root/etc/passwd`));
    assert.match(await readFile(`/proc/${vm.pid}/limits`, 'utf8'), /Max core file size\s+0\s+0/);
    assert.equal((await stat(disk)).uid, machineUid(id), 'a disk that an older node made');
    for (const name of volumes) assert.equal((await stat(join(directory, name))).uid, machineUid(id));

    step('M6: the next process of the node finds it, and copies its disk while it runs');
    vm[Symbol.dispose]();
    const again = (await Vm.adopt(directory, machine.machineId))!;
    assert.equal(again.pid, vm.pid);
    const copy = join(directory, 'copy.tmp');
    const create = ['qemu-img', 'create', '-q', '-f', 'qcow2', copy, '64M'];
    await runImageTool(create, { uid: machineUid(id), writes: [copy] });
    await copyDiskLive(again, 'copy.tmp', 'copy', { limitMs: 60_000, signal: new AbortController().signal });
    await checkLeftCopy(again, directory, machine);
    assert.equal(await Vm.adopt(directory, machine.machineId), undefined);
  } finally {
    await run('kill', ['-9', `${vm.pid}`]).catch(() => {});
  }
}

/** @param vm is let go of: the next process ends it */
async function checkLeftCopy(vm: Vm, directory: string, { machineId }: Machine): Promise<void> {
  step('a copy that a process began which was killed is ended by the next one');
  const target = { driver: 'file', filename: 'copy.tmp' };
  await vm.command('blockdev-add', { driver: 'qcow2', 'node-name': 'to-left', file: target });
  const job = { 'job-id': 'left', device: DISK_DEVICE, target: 'to-left', sync: 'full', speed: 1 };
  await vm.command('blockdev-backup', { ...job, 'auto-dismiss': false });
  vm[Symbol.dispose]();
  const next = (await Vm.adopt(directory, machineId))!;
  const nodes = async () => JSON.stringify(await next.command('query-named-block-nodes'));
  await until('its file is let go of', nodes, (shown) => !shown.includes('to-left'));
  assert.deepEqual(await next.command('query-jobs'), []);
  await next.end();
}

async function checkTool(root: string): Promise<void> {
  step('M6: a tool is a user of its own, without rights, and sees its files and no others');
  const [mine, other] = [join(root, 'mine'), join(root, 'other')];
  await writeFile(mine, 'mine', { mode: 0o600 });
  await writeFile(other, 'other');
  assertPowerless(await runImageTool(['cat', '/proc/self/status'], {}), TOOLS_UID);
  assert.equal(await runImageTool(['cat', mine], { reads: [mine] }), 'mine');
  for (const path of [other, '/etc/passwd', '/root'])
    await assert.rejects(runImageTool(['cat', path], { reads: [mine] }), /No such file/);
  await assert.rejects(runImageTool(['sh', '-c', `echo x > ${mine}`], { reads: [mine] }), /Read-only/);
  await runImageTool(['sh', '-c', `echo x > ${mine}`], { writes: [mine] });
  assert.equal(await readFile(mine, 'utf8'), 'x\n');
}

const root = await mkdtemp(join(tmpdir(), 'skerry-confined-'));
try {
  await checkTool(root);
  await checkQemu(root);
  step('done');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await rm(root, { recursive: true, force: true });
  process.exit();
}
