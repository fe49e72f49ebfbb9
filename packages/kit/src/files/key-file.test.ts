import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { loadKeyFile, loadOrCreateKeyFile } from './key-file.ts';

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skerry-key-file-'));
});
after(() => rm(directory, { recursive: true, force: true }));

const refused = (told: RegExp) => (error: unknown) =>
  error instanceof AppError && error.code === 'INVALID_CONFIG' && told.test(error.message);

test('the first call makes a private file, later calls read the same key', async () => {
  const path = join(directory, 'made', 'below', 'key');
  const key = await loadOrCreateKeyFile(path);
  assert.match(key, /^0x[0-9a-f]{64}$/);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal(await readFile(path, 'utf8'), `${key}\n`);
  assert.equal(await loadOrCreateKeyFile(path), key);
  assert.deepEqual(await readdir(join(directory, 'made', 'below')), ['key']);
});

test('a file that somebody names is read, and never made', async () => {
  const path = join(directory, 'named');
  await assert.rejects(loadKeyFile(path), refused(/^there is no key file .*named$/));
  assert.equal(await loadOrCreateKeyFile(path), await loadKeyFile(path));
});

test('many who start at once end with one key', async () => {
  const path = join(directory, 'raced', 'key');
  const keys = await Promise.all(Array.from({ length: 20 }, () => loadOrCreateKeyFile(path)));
  assert.equal(new Set(keys).size, 1);
  assert.deepEqual(await readdir(join(directory, 'raced')), ['key']);
});

test('a file that others may use is refused, and told how to mend', async () => {
  const path = join(directory, 'open to others');
  await loadOrCreateKeyFile(path);
  for (const mode of [0o644, 0o640, 0o602]) {
    await chmod(path, mode);
    await assert.rejects(loadOrCreateKeyFile(path), refused(/run: chmod 600 '\/.*\/open to others'$/));
  }
  await chmod(path, 0o400);
  await loadOrCreateKeyFile(path);
});

test('a malformed file is refused, never overwritten and never quoted', async () => {
  const path = join(directory, 'damaged');
  const digits = 'ab'.repeat(32);
  for (const text of [
    '',
    digits,
    `0x${digits}00`,
    `0x${digits.slice(2)}`,
    `0x${digits}\n0x${digits}`,
    `0x${'0'.repeat(64)}`,
    `0x${'f'.repeat(64)}`,
    `0x${digits}${'\n'.repeat(300)}x`,
  ]) {
    await writeFile(path, text, { mode: 0o600 });
    await assert.rejects(
      loadOrCreateKeyFile(path),
      (error) =>
        refused(/does not contain a private key/)(error) && !(error as Error).message.includes('abab'),
      JSON.stringify(text),
    );
    assert.equal(await readFile(path, 'utf8'), text);
  }
  await writeFile(path, `0x${digits.toUpperCase()}\r\n`, { mode: 0o600 });
  assert.equal(await loadOrCreateKeyFile(path), `0x${digits}`);
});

test('a directory in the way is refused', async () => {
  const path = join(directory, 'in-the-way');
  await mkdir(path, { mode: 0o700 });
  await assert.rejects(loadOrCreateKeyFile(path), refused(/is not a file|cannot read/));
});
