import assert from 'node:assert/strict';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { run } from '../host/run.ts';
import { inDirectory, onDiskOf } from '../testing/directory.ts';
import { withoutCopies } from './admission.ts';
import { decideOffer, findSplit, readNodeMachine, readProgramsDisk } from './capacity.ts';
import { readUnwritten } from './disks/promised.ts';
import { putAside } from './disks/released.ts';
import { instanceDirectory, newRecord, writeRecord } from './record/record.ts';
import { checkRoom, hasRoom } from './worker/preparation.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const ID = 'a'.repeat(64);
const WANTED = {
  ...{ isRunning: true, owner: '0x1', restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [22] },
};

async function readOffer(dataDir: string, diskGib?: number) {
  const settings = { cpu: undefined, memoryMib: undefined, diskGib };
  const machine = await readNodeMachine(dataDir, createLogger('test', 'silent'));
  return decideOffer(settings, machine, { memoryMib: 0, diskGib: 0 });
}

const readDiskGib = async (dataDir: string) => (await readOffer(dataDir)).capacity.diskGib;

test('what an instance has beyond what it was promised, as snapshots have it, is not offered again', () =>
  onDiskOf(6 * 1_024 + 4, async (dataDir) => {
    const volumes = [{ file: 'volume-0.raw', isReadOnly: false, sizeMib: 1_020, mount: null }];
    await writeRecord(dataDir, { ...newRecord(ID, WANTED, 1), base: 'bases/x', volumes });
    const write = (mib: number) =>
      writeFile(join(instanceDirectory(dataDir, ID), 'disk.qcow2'), Buffer.alloc(mib * MIB, 'x'));
    for (const [mib, offeredGib] of [
      [7, 1],
      [9, 0],
    ] as const) {
      await write(mib);
      assert.equal(await readDiskGib(dataDir), offeredGib);
    }
  }));

test('what instances wrote to their disks and volumes is part of what the node offers after a restart', () =>
  // A little more than the GiB that the node keeps, and one.
  onDiskOf(6 * 1_024 + 4, async (dataDir) => {
    const [own, fetched] = [0, 1].map((index) => {
      const sizeMib = index === 0 ? 16 : 0;
      return { file: `volume-${index}.raw`, isReadOnly: index === 1, sizeMib, mount: null };
    });
    const volumes = [own!, fetched!];
    await writeRecord(dataDir, { ...newRecord(ID, WANTED, 1), base: 'bases/x', volumes });
    assert.equal(await readDiskGib(dataDir), 1);
    const write = (file: string) =>
      writeFile(join(instanceDirectory(dataDir, ID), file), Buffer.alloc(4 * MIB, 'x'));
    for (const file of ['disk.qcow2', own!.file]) await write(file);
    assert.equal(await readDiskGib(dataDir), 1);
    await write(fetched!.file);
    assert.equal(await readDiskGib(dataDir), 0);
  }));

test('copies and instances that moved away have what they had at the start, and what the operator does not offer, beside what is offered', () =>
  onDiskOf(8 * 1_024 + 4, async (dataDir) => {
    const beside = async (diskGib?: number) => (await readOffer(dataDir, diskGib)).besideBytes;
    assert.deepEqual([await beside(), await beside(1), await beside(100)], [0, 2 * 1_024 * MIB, 0]);
    const backups = join(dataDir, 'backups', ID);
    await mkdir(backups, { recursive: true });
    await writeFile(join(backups, 'one.qcow2'), Buffer.alloc(3 * MIB, 'x'));
    assert.deepEqual([await beside(), await beside(1)], [3 * MIB, 2 * 1_024 * MIB + 3 * MIB]);
    const left = newRecord('b'.repeat(64), WANTED, 1);
    await writeRecord(dataDir, left);
    await writeFile(join(instanceDirectory(dataDir, left.id), 'disk.qcow2'), Buffer.alloc(2 * MIB, 'x'));
    await putAside(dataDir, left, 'moved', 1);
    assert.equal(Math.floor((await beside()) / MIB), 5);
  }));

test('after a restart no more is offered than before it, though the operator offers more than the disk has left beside copies', () => {
  const settings = { cpu: undefined, memoryMib: undefined, diskGib: 100 };
  const offerOf = (diskGib: number, copiesGib: number, copiesAtStartGib: number) => {
    const machine = { cpu: 1, memoryMib: 2_048, diskGib, copiesBytes: copiesAtStartGib * GIB };
    const { capacity, besideBytes } = decideOffer(settings, machine, { memoryMib: 0, diskGib: 0 });
    return withoutCopies(capacity, copiesGib * GIB, besideBytes).diskGib;
  };
  for (const [wholeGib, offeredGib] of [
    [110, 65],
    [105, 60],
    [90, 60],
  ] as const) {
    assert.equal(offerOf(wholeGib, 40, 0), offeredGib);
    assert.equal(offerOf(wholeGib - 40, 40, 40), offeredGib);
    assert.equal(offerOf(wholeGib - 40, 0, 40), 100, 'all of it again when they are gone');
  }
});

test('after a restart an instance that moved away comes back to its disk, and nobody else gets the room of that', () => {
  const settings = { cpu: undefined, memoryMib: undefined, diskGib: undefined };
  // Of 40 GiB that were offered it had been promised all, and has written 30 and a half.
  const copiesBytes = 30.5 * GIB;
  const machine = { cpu: 1, memoryMib: 2_048, diskGib: 14, copiesBytes };
  const { capacity, besideBytes } = decideOffer(settings, machine, { memoryMib: 0, diskGib: 0 });
  const offered = (bytes: number) => withoutCopies(capacity, bytes, besideBytes).diskGib;
  assert.equal(offered(copiesBytes), 9);
  assert.equal(offered(0), 39);
  assert.equal(offered(copiesBytes + GIB), 8);
});

test('what is here without a record that can be read is part of what the node offers, and copies leave it the rest', () =>
  onDiskOf(8 * 1_024 + 4, async (dataDir) => {
    const directory = instanceDirectory(dataDir, ID);
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'vm.json'), '{"version":1');
    const disk = Buffer.alloc(7 * MIB, 'x');
    disk.writeUInt32BE(0x514649fb);
    disk.writeBigUInt64BE(BigInt(GIB), 24);
    disk.writeUInt32BE(0, 60);
    await writeFile(join(directory, 'disk.qcow2'), disk);
    const volume = join(directory, 'volume-0.raw');
    await writeFile(volume, '');
    await truncate(volume, GIB);
    assert.equal(await readDiskGib(dataDir), 3);
    assert.equal(await readUnwritten(dataDir), 2 * GIB - 7 * MIB);
  }));

test('a disk that cannot be read keeps the node from nothing, whether or not it has a record', () =>
  inDirectory(async (dataDir) => {
    await writeRecord(dataDir, { ...newRecord(ID, WANTED, 1), base: 'bases/x' });
    // As of a damaged sector, reading it fails.
    for (const id of [ID, 'b'.repeat(64)])
      await mkdir(join(instanceDirectory(dataDir, id), 'disk.qcow2'), { recursive: true });
    const machine = await readNodeMachine(dataDir, createLogger('test', 'silent'));
    assert.equal(machine.copiesBytes, 0);
    assert.ok((await readUnwritten(dataDir)) > GIB / 2);
  }));

test('an instance that can never start is promised nothing of its volumes either', () =>
  inDirectory(async (dataDir) => {
    const volumes = [{ file: 'volume-0.raw', isReadOnly: false, sizeMib: 16, mount: null }];
    const record = { ...newRecord(ID, WANTED, 1), volumes };
    await writeRecord(dataDir, record);
    assert.equal(await readUnwritten(dataDir), 1_024 * MIB);
    await writeRecord(dataDir, { ...record, failure: { code: 'DISK_TOO_SMALL', message: 'none' } });
    assert.equal(await readUnwritten(dataDir), 0);
  }));

test('where instances/ is a link to another disk, that disk is what is looked at', () =>
  // A little more than the GiB that the node keeps, and one; and less than a guest needs to go on.
  onDiskOf(6 * 1_024 + 4, (large) =>
    onDiskOf(32, async (small) => {
      const log = createLogger('test', 'silent');
      await symlink(small, join(large, 'instances'));
      assert.equal(await readDiskGib(large), 0);
      await assert.rejects(checkRoom(large), { code: 'STORAGE_FULL' });
      assert.equal(await hasRoom(large), false);
      const machine = await readNodeMachine(large, log);
      assert.deepEqual(await readProgramsDisk(large, machine), { isShared: false, freeGib: 6 });
      assert.deepEqual(await findSplit(large), ['released', 'backups']);
      for (const name of ['released', 'backups']) await symlink(small, join(large, name));
      assert.deepEqual(await findSplit(large), []);

      await symlink(large, join(small, 'instances'));
      assert.equal(await readDiskGib(small), 1);
      await checkRoom(small);
    }),
  ));

test('mounts of one disk are told apart from links: nothing can be moved from one to another', () =>
  onDiskOf(32, async (dataDir) => {
    for (const name of ['instances', 'released', 'backups', 'other']) await mkdir(join(dataDir, name));
    assert.deepEqual(await findSplit(join(dataDir, 'not-there-yet')), []);
    assert.deepEqual(await findSplit(dataDir), []);
    await run('mount', ['--bind', join(dataDir, 'other'), join(dataDir, 'released')]);
    assert.deepEqual(await findSplit(dataDir), ['released']);
    await run('mount', ['--bind', join(dataDir, 'other'), join(dataDir, 'instances')]);
    assert.deepEqual(await findSplit(dataDir), ['released', 'backups']);
  }));

test('a node whose instances/ is a link to nowhere does not take it for one without instances', () =>
  inDirectory(async (dataDir) => {
    await symlink(join(dataDir, 'unmounted', 'instances'), join(dataDir, 'instances'));
    const log = createLogger('test', 'silent');
    for (const look of [() => readNodeMachine(dataDir, log), () => findSplit(dataDir)])
      await assert.rejects(look, { code: 'INVALID_CONFIG', message: /mount the disk that it leads to/ });
  }));
