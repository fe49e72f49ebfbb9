import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { isFit, makeRunDirectory } from './directory.ts';

const GIB = 1024 ** 3;

test('tests write into memory where it is large and nothing that they do is forbidden', () => {
  const root = '/dev/vda / ext4 rw,relatime 0 0\n';
  const fits = (options: string, gib = 20, type = 'tmpfs') =>
    isFit(`${root}shm /dev/shm ${type} ${options} 0 0\n`, '/dev/shm', gib * GIB);
  assert.equal(fits('rw,relatime'), true);
  assert.equal(fits('rw,nosuid'), true);
  assert.equal(fits('rw,nosuid,nodev,noexec'), false);
  assert.equal(fits('rw,nosuid,nodev'), false);
  assert.equal(fits('ro'), false);
  assert.equal(fits('rw', 2), false);
  assert.equal(fits('rw', 20, 'ext4'), false);
  assert.equal(isFit(root, '/dev/shm', 20 * GIB), false);
});

test('what a killed run left is removed by the next one, and what a living one has stays', async () => {
  using living = await makeRunDirectory();
  const abandoned = mkdtempSync(join(dirname(living.path), 'skerry-run-'));
  writeFileSync(join(abandoned, 'file'), '');
  using next = await makeRunDirectory();
  assert.deepEqual([abandoned, living.path, next.path].map(existsSync), [false, true, true]);
});

test('a directory that a killed run has something mounted in keeps no other from starting', {
  skip: process.geteuid?.() !== 0 && 'only root mounts',
}, async () => {
  using living = await makeRunDirectory();
  const mounted = join(mkdtempSync(join(dirname(living.path), 'skerry-run-')), 'mounted');
  mkdirSync(mounted);
  execFileSync('mount', ['-t', 'tmpfs', 'none', mounted]);
  try {
    using next = await makeRunDirectory();
    assert.ok(existsSync(next.path));
  } finally {
    execFileSync('umount', [mounted]);
  }
});
