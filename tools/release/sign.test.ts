import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { CHECKSUMS } from '@skerry/console';
import { writeChecksums } from './release.ts';
import { signChecksums, verifyRelease } from './sign.ts';

test('checksums that are signed are whose they are, and what was changed after that is found', (t) => {
  const home = mkdtempSync(join(tmpdir(), 'skerry-sign-'));
  t.after(() => rmSync(home, { recursive: true }));
  const files = mkdtempSync(join(home, 'release-'));
  const release = { files, staged: '', epoch: 0 };
  const key = generatePrivateKey();
  const { address } = createSigner(key);
  writeFileSync(join(home, 'key'), `${key}\n`);
  writeFileSync(join(files, 'a.tgz'), 'one');
  const sign = () => {
    writeChecksums(release);
    signChecksums(release, join(home, 'key'));
  };
  sign();
  assert.equal(verifyRelease(files), address);
  assert.equal(verifyRelease(files, address), address);
  const other = createSigner(generatePrivateKey()).address;
  assert.throws(() => verifyRelease(files, other), { code: 'INVALID_SIGNATURE' });
  writeFileSync(join(files, 'a.tgz'), 'two');
  assert.throws(() => verifyRelease(files), { code: 'FILE_CORRUPT' });
  sign();
  appendFileSync(join(files, CHECKSUMS), `${'0'.repeat(64)}  b.tgz\n`);
  assert.throws(() => verifyRelease(files), { code: 'INVALID_SIGNATURE' });
  // A signature of other checksums is none of these.
  writeChecksums(release);
  assert.throws(() => verifyRelease(files), { code: 'ENOENT' });
});
