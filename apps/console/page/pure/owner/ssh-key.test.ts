import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isSshKey } from '@skerry/protocol/forms';
import { makeSshKey } from './ssh-key.ts';

test('OpenSSH reads an ssh key that was made here, and signs with it', async () => {
  const { line, file } = await makeSshKey('web@skerry');
  assert.ok(isSshKey(line));
  const directory = mkdtempSync(join(tmpdir(), 'skerry-ssh-key-'));
  try {
    const path = join(directory, 'key');
    writeFileSync(path, file, { mode: 0o600 });
    assert.equal(execFileSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' }).trim(), line);
    writeFileSync(join(directory, 'text'), 'text');
    execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-n', 'test', '-f', path, join(directory, 'text')], {
      stdio: 'ignore',
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
