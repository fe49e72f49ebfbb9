import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { runImageTool } from '../../host/image-tool.ts';
import { inDirectory, onDiskOf } from '../../testing/directory.ts';
import { instanceDirectory, newRecord, writeRecord } from '../record/record.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { readUnwritten } from './promised.ts';
import { createSnapshot } from './snapshots.ts';

const MIB = 1024 ** 2;
const ID = 'a'.repeat(64);
const WANTED = {
  ...{ isRunning: true, owner: '0x1', restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [22] },
};

test('a snapshot needs room for what its disk may write again, so that snapshots fill no node', () =>
  inDirectory((elsewhere) =>
    onDiskOf(1_024 + 32, async (dataDir) => {
      const directory = join(dataDir, 'instances', ID);
      for (const path of [directory, join(dataDir, 'bases/x')]) await mkdir(path, { recursive: true });
      await writeFile(join(dataDir, 'bases/x/disk.qcow2'), '');
      const [raw, disk] = [join(elsewhere, 'raw'), join(directory, 'disk.qcow2')];
      await writeFile(raw, randomBytes(20 * MIB));
      const files = { reads: [raw], writes: [disk] };
      await runImageTool(['qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, disk], files);
      const instance = { directory, record: { id: ID, base: 'bases/x' }, vm: undefined };
      await assert.rejects(
        createSnapshot(instance as unknown as IdleInstance, 'one'),
        (error) =>
          error instanceof AppError && error.code === 'STORAGE_FULL' && /snapshot needs/.test(error.message),
      );
    }),
  ));

test('a snapshot takes nothing of the disk that others were promised, and what it may keep is counted once it is there', () =>
  // The reserve, what the other one was promised, and half of what the disk may write once more.
  onDiskOf(2 * 1_024 + 8, async (dataDir) => {
    const directory = instanceDirectory(dataDir, ID);
    const own = { ...newRecord(ID, WANTED, 1), base: 'bases/x' };
    const other = { ...own, id: 'b'.repeat(64) };
    for (const record of [own, other]) await writeRecord(dataDir, record);
    await mkdir(join(dataDir, 'bases/x'), { recursive: true });
    await writeFile(join(dataDir, 'bases/x/disk.qcow2'), '');
    const disk = join(directory, 'disk.qcow2');
    await runImageTool(['qemu-img', 'create', '-q', '-f', 'qcow2', disk, '16M'], { writes: [disk] });
    const instance = { directory, record: own, vm: undefined } as unknown as IdleInstance;
    await assert.rejects(createSnapshot(instance, 'one'), { code: 'STORAGE_FULL' });
    await rm(instanceDirectory(dataDir, other.id), { recursive: true });
    assert.ok((await readUnwritten(dataDir)) < 1_024 * MIB, 'what it wrote is not counted');
    assert.deepEqual(
      (await createSnapshot(instance, 'one')).map(({ name }) => name),
      ['one'],
    );
    assert.equal(await readUnwritten(dataDir), 1_024 * MIB, 'it may write all of it once more');
    assert.equal(await readUnwritten(dataDir, ID), 0);
  }));
