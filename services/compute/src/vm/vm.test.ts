import assert from 'node:assert/strict';
import { readdir, readlink } from 'node:fs/promises';
import { test } from 'node:test';
import { inDirectory } from '../testing/directory.ts';
import type { Machine } from './machine.ts';
import { Vm } from './vm.ts';

const machine: Machine = {
  id: 'a'.repeat(64),
  machineId: 'a'.repeat(32),
  cpu: 1,
  memoryMib: 64,
  boot: 'firmware',
  disk: 'disk.qcow2',
  seed: 'seed.iso',
  volumes: [],
  tap: 't',
  mac: '52:00:00:00:00:01',
};

/** What this process has open below a directory. */
async function listOpen(directory: string): Promise<string[]> {
  const names = await readdir('/proc/self/fd');
  const paths = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return paths.filter((path) => path.startsWith(`${directory}/`));
}

test('a machine whose disk is gone is not started, however often it is tried, and no file stays open for it', () =>
  inDirectory(async (directory) => {
    await assert.rejects(Vm.start(directory, machine, 'tcg'), { code: 'ENOENT' });
    assert.deepEqual(await listOpen(directory), []);
  }));
