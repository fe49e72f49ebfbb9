import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { inDirectory } from '../testing/directory.ts';
import { uuidOf } from './command-line.ts';
import { isOurQemu, isQemuOf, machineIdIn, readProcess, searchQemu } from './process.ts';

const machineId = '00112233445566778899aabbccddeeff';
const ours = {
  executable: '/usr/bin/qemu-system-x86_64',
  directory: '/data/instances/a',
  args: ['qemu-system-x86_64', '-uuid', '00112233-4455-6677-8899-aabbccddeeff', '-nodefaults'],
};

describe('isOurQemu', () => {
  test('the program, its directory and the machine must all fit', () => {
    assert.equal(isOurQemu(ours, '/data/instances/a', machineId), true);
    assert.equal(isOurQemu({ ...ours, executable: '/usr/bin/vim' }, '/data/instances/a', machineId), false);
    assert.equal(isOurQemu(ours, '/data/instances/b', machineId), false);
    assert.equal(isOurQemu(ours, '/data/instances/a', machineId.replace('0', 'f')), false);
    assert.equal(
      isOurQemu({ ...ours, args: ['qemu-system-x86_64', '-uuid'] }, '/data/instances/a', machineId),
      false,
    );
  });

  test('a QEMU whose file was replaced by an upgrade is still ours', () => {
    const upgraded = { ...ours, executable: `${ours.executable} (deleted)` };
    assert.equal(isOurQemu(upgraded, '/data/instances/a', machineId), true);
  });
});

test('which machine a QEMU runs is read from its command line', () => {
  assert.equal(machineIdIn(ours), machineId);
  assert.equal(machineIdIn({ ...ours, args: ['vim', 'notes'] }), undefined);
});

test('a number that is used again by another program is not taken for a machine', async () => {
  assert.ok(await readProcess(process.pid));
  assert.equal(await isQemuOf(process.pid, process.cwd(), machineId), false);
  for (const pid of [0, 1, -1, Number.NaN, 2 ** 30]) assert.equal(await isQemuOf(pid, '/', machineId), false);
});

test('a machine is found in a directory that a link leads to', () =>
  inDirectory(async (home) => {
    const program = join(home, 'qemu-system-shell');
    await copyFile('/bin/sh', program);
    const [place, link] = [join(home, 'place'), join(home, 'link')];
    await mkdir(place);
    await symlink(place, link);
    const args = ['-c', 'read line', '-uuid', uuidOf(machineId)];
    const machine = spawn(program, args, { cwd: link, stdio: ['pipe', 'ignore', 'ignore'] });
    await once(machine, 'spawn');
    try {
      assert.equal(await searchQemu(link, machineId), machine.pid);
      assert.equal(await isQemuOf(machine.pid!, link, machineId), true);
      assert.equal(await searchQemu(home, machineId), undefined);
    } finally {
      machine.kill('SIGKILL');
      await once(machine, 'exit');
    }
  }));
