import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CHECKSUMS } from '@skerry/console';
import { releasePackages } from './npm.ts';
import { createRelease, writeChecksums } from './release.ts';

test('the packages are the same, byte by byte, when they are made again elsewhere', async (t) => {
  const outside = mkdtempSync(join(tmpdir(), 'skerry-release-'));
  t.after(() => rmSync(outside, { recursive: true, force: true }));
  const sumsOf = async (name: string, mask: number) => {
    const release = createRelease(join(outside, name));
    const before = process.umask(mask);
    try {
      await releasePackages(release);
    } finally {
      process.umask(before);
    }
    writeChecksums(release);
    return readFileSync(join(release.files, CHECKSUMS), 'utf8').split('\n');
  };
  assert.deepEqual(await sumsOf('again', 0o077), await sumsOf('build', 0o022));
});
