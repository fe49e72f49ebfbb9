import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { inDirectory } from '../testing/directory.ts';
import { CHARDEV, uuidOf } from './command-line.ts';
import { MACHINE_FILES, type Machine } from './machine.ts';
import { QEMU, Vm } from './vm.ts';

const machine: Machine = {
  id: 'a'.repeat(64),
  machineId: 'a'.repeat(32),
  cpu: 1,
  memoryMib: 64,
  boot: 'firmware',
  disk: 'disk.qcow2',
  seed: 'seed.iso',
  volumes: [],
  tap: 't',
  mac: '52:00:00:00:00:01',
};

/** What this process has open below a directory. */
async function listOpen(directory: string): Promise<string[]> {
  const names = await readdir('/proc/self/fd');
  const paths = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return paths.filter((path) => path.startsWith(`${directory}/`));
}

test('a machine whose disk is gone is not started, however often it is tried, and no file stays open for it', () =>
  inDirectory(async (directory) => {
    await assert.rejects(Vm.start(directory, machine, 'tcg'), { code: 'ENOENT' });
    assert.deepEqual(await listOpen(directory), []);
  }));

/** A QEMU without a machine in it. */
async function startQemu(directory: string) {
  const qmp = `unix:${MACHINE_FILES.qmp},server=on,wait=off`;
  const console = `ringbuf,id=${CHARDEV.console},size=64K`;
  const args = ['-machine', 'none', '-nodefaults', '-display', 'none', '-uuid', uuidOf(machine.machineId)];
  const stdio = 'ignore';
  const child = spawn(QEMU, [...args, '-chardev', console, '-qmp', qmp], { cwd: directory, stdio });
  await until('it listens', async () => (await readdir(directory)).includes(MACHINE_FILES.qmp));
  return {
    send: (signal: NodeJS.Signals) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

test('a QEMU that hangs while it is spoken to is silent, is spoken to again when it goes on, and can be ended', () =>
  inDirectory(async (directory) => {
    await using qemu = await startQemu(directory);
    using vm = await Vm.adopt(directory, machine.machineId, 60_000, 200);
    assert.equal(vm?.state, 'booting');
    qemu.send('SIGSTOP');
    assert.equal((await vm.readConsole()).length, 0);
    assert.equal(vm.state, 'silent');
    await vm.reach();
    assert.equal(vm.state, 'silent', 'it is there, and does not answer yet');
    qemu.send('SIGCONT');
    await until('it answers', async () => {
      await vm.reach();
      return vm.state === 'booting';
    });
    assert.equal(typeof (await vm.command('query-status')), 'object');
    qemu.send('SIGSTOP');
    await vm.readConsole();
    await vm.end();
    assert.equal(vm.state, 'gone');
  }));
