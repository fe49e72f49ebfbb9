import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type DiskShare, NO_SHARE, probeArguments, qemuArguments, sizeIn, uuidOf } from './command-line.ts';
import type { Machine } from './machine.ts';

const machine: Machine = {
  id: 'ab'.repeat(32),
  machineId: '00112233445566778899aabbccddeeff',
  cpu: 2,
  memoryMib: 512,
  boot: { kernel: '/data/bases/a,b/vmlinuz', initrd: '/data/bases/a,b/initrd' },
  disk: 'disk.qcow2',
  seed: 'seed.iso',
  volumes: [],
  tap: 'sabcde123456789',
  mac: '52:00:00:00:00:01',
};

function valuesOf(args: readonly string[], option: string): string[] {
  return args.flatMap((arg, index) => (arg === option ? [args[index + 1] ?? ''] : []));
}

const confines = { uid: 1_879_048_192, root: '/data/instances/a' };

describe('qemuArguments', () => {
  test('software emulation has a bounded translation cache', () => {
    assert.deepEqual(valuesOf(qemuArguments(machine, 'tcg', confines), '-accel'), ['tcg,tb-size=128']);
    assert.deepEqual(valuesOf(qemuArguments(machine, 'tcg', confines), '-cpu'), ['max']);
  });

  test('hardware differs in nothing but the accelerator and the processor', () => {
    const differing = qemuArguments(machine, 'kvm', confines).filter(
      (arg, index) => arg !== qemuArguments(machine, 'tcg', confines)[index],
    );
    assert.deepEqual(differing, ['kvm', 'host']);
  });

  test('the machine is what was asked for, in a sandbox, and nothing of QEMU runs by default', () => {
    const args = qemuArguments(machine, 'tcg', confines);
    assert.deepEqual(valuesOf(args, '-smp'), ['cpus=2']);
    assert.deepEqual(valuesOf(args, '-m'), ['size=512M']);
    assert.deepEqual(sizeIn(args), { cpu: 2, memoryMib: 512 });
    assert.deepEqual(sizeIn([]), { cpu: 0, memoryMib: 0 });
    assert.match(valuesOf(args, '-sandbox')[0] ?? '', /^on,.*spawn=deny/);
    assert.ok(args.includes('-nodefaults') && args.includes('-no-user-config'));
    assert.ok(!args.includes('-daemonize'));
    assert.match(valuesOf(args, '-action')[0] ?? '', /shutdown=pause/);
    assert.match(valuesOf(args, '-netdev')[0] ?? '', /ifname=sabcde123456789,script=no,downscript=no/);
  });

  test('paths of sockets stay short, whatever the data directory is', () => {
    assert.deepEqual(valuesOf(qemuArguments(machine, 'tcg', confines), '-qmp'), [
      'unix:qmp.sock,server=on,wait=off',
    ]);
  });

  test('volumes come after the disk and the seed, in their order; what is read-only is so for the guest', () => {
    const volume = { sizeMib: 1, mount: null };
    const volumes = [
      { ...volume, file: 'volume-0.raw', isReadOnly: true },
      { ...volume, file: 'volume-1.raw', isReadOnly: false },
    ];
    const drives = valuesOf(qemuArguments({ ...machine, volumes }, 'tcg', confines), '-drive');
    assert.deepEqual(drives.slice(2), [
      'id=volume0,if=none,file=volume-0.raw,format=raw,readonly=on',
      'id=volume1,if=none,file=volume-1.raw,format=raw,discard=unmap',
    ]);
  });

  test('all disks of a guest have one share together, and no more than what is set limits it', () => {
    const volumes = [{ file: 'volume-0.raw', isReadOnly: false, sizeMib: 1, mount: null }];
    const drivesOf = (share: DiskShare) =>
      valuesOf(qemuArguments({ ...machine, volumes }, 'tcg', confines, share), '-drive');
    const shared = ',throttling.group=guest,throttling.bps-total=2097152,throttling.iops-total=100';
    const drives = drivesOf({ guestDiskRateMib: 2, guestDiskOperations: 100 });
    assert.equal(drives.length, 3);
    for (const drive of drives) assert.ok(drive.endsWith(shared), drive);
    for (const drive of drivesOf({ guestDiskRateMib: 2, guestDiskOperations: 0 }))
      assert.ok(drive.endsWith(',throttling.group=guest,throttling.bps-total=2097152'), drive);
    for (const drive of drivesOf(NO_SHARE)) assert.doesNotMatch(drive, /throttling/);
  });

  test("a comma in a file's name does not become an option", () => {
    const drives = valuesOf(qemuArguments({ ...machine, disk: 'a,readonly=on' }, 'tcg', confines), '-drive');
    assert.match(drives[0] ?? '', /file=a,,readonly=on,/);
  });

  test('no argument comes from a stranger: the guest is known by its hash', () => {
    const args = qemuArguments(machine, 'tcg', confines);
    assert.deepEqual(valuesOf(args, '-uuid'), ['00112233-4455-6677-8899-aabbccddeeff']);
    assert.equal(uuidOf(machine.machineId), '00112233-4455-6677-8899-aabbccddeeff');
  });
});

test('the self-test asks the initrd to say that it is alive', () => {
  const args = probeArguments('/k', '/i', 'word', 'kvm', confines);
  assert.match(valuesOf(args, '-append')[0] ?? '', / word$/);
  assert.deepEqual(valuesOf(args, '-accel'), ['kvm']);
});
