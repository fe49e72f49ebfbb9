import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { releasePackages } from '../release/npm.ts';
import { createRelease } from '../release/release.ts';
import { releaseDebian } from './build.ts';

test("Debian's lintian says nothing of the packages that their overrides do not answer", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'skerry-lintian-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const release = createRelease(directory);
  await releasePackages(release);
  const packages = (await releaseDebian(release)).filter((name) => name.endsWith('.deb'));
  const args = ['--allow-root', '--fail-on', 'error,warning', '--tag-display-limit', '0'];
  const said = spawnSync('lintian', [...args, ...packages], { cwd: release.files, encoding: 'utf8' });
  assert.equal(said.stdout, '');
  assert.equal(said.status, 0, said.stderr);
});
