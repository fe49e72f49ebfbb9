import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isOurQemu, isQemuOf, machineIdIn, readProcess } from './process.ts';

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
