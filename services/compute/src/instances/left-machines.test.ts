import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError } from '@skerry/protocol';
import type { Ipv4Claim } from '../network/address-book.ts';
import { ipv4LinkOf } from '../network/ipv4.ts';
import { tapName } from '../network/names.ts';
import { damageSector, inDirectory } from '../testing/directory.ts';
import { MACHINE_FILES } from '../vm/machine.ts';
import { listReleased } from './disks/released.ts';
import { findLeftMachines } from './left-machines.ts';
import { instanceDirectory, newRecord, readRecord, writeRecord } from './record/record.ts';
import {
  damageRecord,
  ENDED,
  NAMES,
  NEED,
  openInstances,
  POOL,
  RUNNING,
  refusalOf,
  startQemu,
  viewOf,
  WANTED,
  WHOLE,
} from './testing/unrecorded.ts';

test('a machine that runs keeps its tap and its link though the record of its instance is damaged', () =>
  inDirectory(async (dataDir) => {
    const own: Ipv4Claim = { link: 0, hostPorts: {} };
    await writeRecord(dataDir, { ...newRecord(WHOLE, WANTED, 1), base: 'bases/x', ipv4: own });
    for (const id of [RUNNING, ENDED]) await damageRecord(dataDir, id);
    await using _qemu = await startQemu(dataDir, RUNNING);
    assert.deepEqual(await findLeftMachines(dataDir), [RUNNING]);
    await using node = openInstances(dataDir);
    await node.instances.resume(0);
    assert.deepEqual(node.started, [[[tapName(NAMES, WHOLE)], [tapName(NAMES, RUNNING)]]]);
    assert.equal((await node.addresses.claim(RUNNING, { allowedPorts: [] })).link, 7);
  }));

test('a machine whose record is damaged is taken over when its instance is named again, and has its network', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await using qemu = await startQemu(dataDir, RUNNING);
    const said: string[] = [];
    const log = createLogger('test', 'warn', { write: (line) => void said.push(line) });
    await using node = openInstances(dataDir, undefined, log);
    const { instances, added, asked, told } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running'));
    await until('something is told', () => told.length > 0);
    assert.equal(told[0]!.phase, 'starting');
    assert.match(told[0]!.reason?.message ?? '', /QEMU is running but does not answer/);
    assert.match(said.at(-1) ?? '', /QEMU is running but does not answer/, 'its operator hears of it, too');
    assert.deepEqual(added, [[tapName(NAMES, RUNNING), ipv4LinkOf(POOL, 7).gateway]]);
    // Before anything is done that could end this process: the next one would take its tap away.
    assert.equal(instances.find(RUNNING)?.record.ipv4?.link, 7);
    assert.deepEqual(asked, []);
    assert.ok(await qemu.lives());
  }));

test('a QEMU that does not answer is told in the log once, however often it is asked', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await using _qemu = await startQemu(dataDir, RUNNING);
    let asks = 0;
    const socket = createServer((connection) => {
      asks++;
      connection.destroy();
    });
    // The address of a socket is short; whoever connects follows a link to it.
    await once(socket.listen(join(dataDir, 'qmp')), 'listening');
    await symlink(join(dataDir, 'qmp'), join(instanceDirectory(dataDir, RUNNING), MACHINE_FILES.qmp));
    const said: string[] = [];
    const log = createLogger('test', 'warn', { write: (line) => void said.push(line) });
    try {
      await using node = openInstances(dataDir, undefined, log);
      await node.instances.resume(0);
      await node.instances.apply(viewOf('running'));
      for (let count = 0; count < 5; count++) {
        const before = asks;
        node.instances.find(RUNNING)!.wake();
        await until('it is asked again', () => asks > before);
      }
      const lines = said.filter((line) => /QEMU is running but does not answer/.test(line));
      assert.equal(lines.length, 1, lines.join());
    } finally {
      socket.close();
    }
  }));

test('a machine whose record is damaged ends when its instance is to be stopped', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await using qemu = await startQemu(dataDir, RUNNING);
    await using node = openInstances(dataDir);
    const { instances, told } = node;
    await instances.resume(0);
    await instances.apply(viewOf('stopped'));
    await until('it is stopped', () => told.at(-1)?.phase === 'stopped');
    assert.equal(await qemu.lives(), false);
  }));

test('a machine whose record is damaged keeps the files of its volumes and what it was promised, whatever fails meanwhile', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    const volume = join(instanceDirectory(dataDir, RUNNING), 'volume-0.raw');
    await writeFile(volume, 'written');
    await using _qemu = await startQemu(dataDir, RUNNING);
    await using node = openInstances(dataDir, async () => {
      throw new AppError('INVALID_IMAGE', 'what is not tried again');
    });
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running'));
    await until('it is given up', () => instances.find(RUNNING)?.record.failure != null);
    // Behind whatever the failure had done.
    await instances.find(RUNNING)!.runTask(async () => {});
    assert.equal(await readFile(volume, 'utf8'), 'written');
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', / 0 MiB of memory left /);
  }));

test('an instance whose record is damaged keeps its volumes, though it cannot be prepared and its owner forgets it', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    const volume = join(instanceDirectory(dataDir, ENDED), 'volume-0.raw');
    await writeFile(volume, 'written');
    await using node = openInstances(dataDir);
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running', ENDED));
    await until('it is given up', () => instances.find(ENDED)?.record.failure != null);
    // Behind whatever the failure had done.
    await instances.find(ENDED)!.runTask(async () => {});
    assert.equal(await readFile(volume, 'utf8'), 'written');
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', / 0 GiB of disk left /);
    await instances.forget(ENDED);
    await until('it has left', () => instances.find(ENDED) === undefined);
    const [aside] = await listReleased(dataDir);
    assert.equal(await readFile(join(aside!.directory, 'volume-0.raw'), 'utf8'), 'written');
  }));

/** The beginning of a disk. */
function diskOf(gib: number): Buffer {
  const header = Buffer.alloc(104);
  header.writeUInt32BE(0x514649fb);
  header.writeBigUInt64BE(BigInt(gib) * 1024n ** 3n, 24);
  return header;
}

test('what a machine has whose record is damaged is promised to nobody else, and to its own instance again', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await using _qemu = await startQemu(dataDir, RUNNING, '-smp', 'cpus=4', '-m', 'size=512M');
    await using node = openInstances(dataDir);
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running', WHOLE));
    const lack =
      /^this node has 0 virtual cores left of the 1 needed, 0 MiB of memory left of the 512 needed$/;
    assert.match(instances.absenceOf(WHOLE)?.message ?? '', lack);
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', lack);
    await instances.apply(viewOf('running'));
    assert.equal(instances.absenceOf(RUNNING)?.message, undefined);
    assert.ok(instances.find(RUNNING));
  }));

test('a disk whose record is damaged is promised to nobody else, and its own instance comes back to it', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await writeFile(join(instanceDirectory(dataDir, ENDED), 'disk.qcow2'), diskOf(1));
    await using node = openInstances(dataDir);
    const { instances } = node;
    await instances.resume(0);
    await instances.apply(viewOf('stopped', WHOLE));
    const lack = /^this node has 0 GiB of disk left of the 1 needed$/;
    assert.match(instances.absenceOf(WHOLE)?.message ?? '', lack);
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', lack);
    await instances.apply(viewOf('running', ENDED));
    await until('it is given up', () => instances.find(ENDED)?.record.failure != null);
    assert.match(refusalOf(await instances.reserve('0x1', NEED)) ?? '', / 0 GiB of disk left /);
  }));

test('a record that the disk cannot read keeps no node from starting, and is kept where another takes its place', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    const record = join(instanceDirectory(dataDir, RUNNING), 'vm.json');
    await damageSector(record);
    await using qemu = await startQemu(dataDir, RUNNING);
    await using node = openInstances(dataDir);
    const { instances, told } = node;
    await instances.resume(0);
    await instances.apply(viewOf('running'));
    await until('something is told', () => told.length > 0);
    assert.match(told[0]!.reason?.message ?? '', /QEMU is running but does not answer/);
    assert.equal(await readlink(`${record}.unreadable`), '/proc/self/mem');
    assert.equal((await readRecord(dataDir, RUNNING))?.isFound, true);
    assert.ok(await qemu.lives());
  }));
