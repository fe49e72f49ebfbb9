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

test('what instances wrote to their disks and volumes is part of what the node offers after a restart', () =>
  // A little more than the GiB that the node keeps, and one.
  onDiskOf(6 * 1_024 + 4, async (dataDir) => {
    const [own, fetched] = [0, 1].map((index) => {
      const sizeMib = index === 0 ? 16 : 0;
      return { file: `volume-${index}.raw`, isReadOnly: index === 1, sizeMib, mount: null };
    });
    const volumes = [own!, fetched!];
    await writeRecord(dataDir, { ...newRecord(ID, WANTED, 1), base: 'bases/x', volumes });
    const read = async () => {
      const settings = { dataDir, cpu: undefined, memoryMib: undefined, diskGib: undefined };
      return (await readNodeCapacity(settings, 0, createLogger('test', 'silent'))).diskGib;
    };
    assert.equal(await read(), 1);
    const write = (file: string) =>
      writeFile(join(instanceDirectory(dataDir, ID), file), Buffer.alloc(4 * MIB, 'x'));
    for (const file of ['disk.qcow2', own!.file]) await write(file);
    assert.equal(await read(), 1);
    await write(fetched!.file);
    assert.equal(await read(), 0);
  }));
