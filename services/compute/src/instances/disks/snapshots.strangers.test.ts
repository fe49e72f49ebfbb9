import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { runImageTool } from '../../host/image-tool.ts';
import { inDirectory, onDiskOf } from '../../testing/directory.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { createSnapshot } from './snapshots.ts';

const MIB = 1024 ** 2;
const ID = 'a'.repeat(64);

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
