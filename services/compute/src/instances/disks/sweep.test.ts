import assert from 'node:assert/strict';
import { closeSync, writeSync } from 'node:fs';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { inDirectory } from '../../testing/directory.ts';
import { openMachineLog } from '../../vm/machine-log.ts';
import { instanceDirectory } from '../record/record.ts';
import { keepRoom } from './sweep.ts';

/** Looks once whether there is room. */
async function lookOnce(dataDir: string): Promise<void> {
  const ending = new AbortController();
  const images = { sweep: async () => ending.abort() };
  await keepRoom(dataDir, { images, log: createLogger('test', 'silent'), signal: ending.signal });
}

test('a guest that has its QEMU complain without end does not fill the disk: the last words are kept', () =>
  inDirectory(async (dataDir) => {
    const directory = instanceDirectory(dataDir, 'b'.repeat(64));
    const unreadable = instanceDirectory(dataDir, 'a'.repeat(64));
    // Not all that is there has a log, and that of another one cannot be read.
    for (const one of [directory, unreadable, join(dataDir, 'instances', 'lost')])
      await mkdir(one, { recursive: true });
    await symlink('qemu.log', join(unreadable, 'qemu.log'));
    const complaint = 'virtio: bogus descriptor or out of resources\n';
    const log = openMachineLog(directory);
    const read = () => readFile(join(directory, 'qemu.log'), 'latin1');
    try {
      writeSync(log, complaint);
      await lookOnce(dataDir);
      assert.equal(await read(), complaint, 'one that is short stays as it is');
      for (let round = 0; round < 2; round++) {
        writeSync(log, complaint.repeat(40_000));
        await lookOnce(dataDir);
        assert.ok((await read()).length <= 64 * 1024);
      }
      writeSync(log, 'the last words\n');
      assert.ok((await read()).endsWith(`${complaint}the last words\n`));
    } finally {
      closeSync(log);
    }
  }));
