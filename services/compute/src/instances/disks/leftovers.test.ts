import assert from 'node:assert/strict';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { inDirectory } from '../../testing/directory.ts';
import { removeLeftovers } from './leftovers.ts';

test('what was left unfinished is removed, whatever lies beside it and whatever cannot be looked at', () =>
  inDirectory(async (dataDir) => {
    const instances = join(dataDir, 'instances');
    const whole = join(instances, 'a'.repeat(64));
    await mkdir(whole, { recursive: true });
    for (const name of ['disk.qcow2', 'disk.qcow2.tmp', 'disk.qcow2.new'])
      await writeFile(join(whole, name), '');
    await writeFile(join(instances, 'of-the-operator'), '');
    // Listing it fails, as that of a damaged directory does.
    const unlisted = join(instances, 'b'.repeat(64));
    await symlink(unlisted, unlisted);
    const { removed, faults } = await removeLeftovers(dataDir);
    assert.deepEqual([...removed].sort(), [join(whole, 'disk.qcow2.new'), join(whole, 'disk.qcow2.tmp')]);
    assert.deepEqual(Object.keys(faults), [unlisted]);
    assert.deepEqual(await readdir(whole), ['disk.qcow2']);
  }));
