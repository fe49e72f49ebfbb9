import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { onDiskOf } from '../testing/directory.ts';
import { readNodeCapacity } from './capacity.ts';
import { instanceDirectory, newRecord, writeRecord } from './record/record.ts';

const MIB = 1024 ** 2;
const ID = 'a'.repeat(64);
const WANTED = {
  ...{ isRunning: true, owner: '0x1', restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [22] },
};

async function readDiskGib(dataDir: string): Promise<number> {
  const settings = { dataDir, cpu: undefined, memoryMib: undefined, diskGib: undefined };
  const programs = { memoryMib: 0, diskGib: 0 };
  return (await readNodeCapacity(settings, programs, createLogger('test', 'silent'))).diskGib;
}

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
