import assert from 'node:assert/strict';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { createTestDir } from '../testing/run.ts';
import { createKey, listKeys, loadKey } from './key-store.ts';

test('a key is private to its owner, and loads as the address that it was made for', async () => {
  await using dir = await createTestDir();
  const made = await createKey(dir.path, 'default', false);
  assert.equal((await stat(made.path)).mode & 0o777, 0o600);
  assert.equal((await stat(join(dir.path, 'keys'))).mode & 0o777, 0o700);
  const loaded = await loadKey(dir.path, 'default');
  assert.equal(loaded.address, made.address);
  assert.equal(await readFile(made.path, 'utf8'), `${loaded.privateKey}\n`);
  assert.ok(!('privateKey' in made));
});

test('an existing key is kept; by force it is put aside', async () => {
  await using dir = await createTestDir();
  const first = await createKey(dir.path, 'default', false);
  const text = await readFile(first.path, 'utf8');
  await assert.rejects(createKey(dir.path, 'default', false), { code: 'KEY_EXISTS' });
  assert.equal(await readFile(first.path, 'utf8'), text);
  const second = await createKey(dir.path, 'default', true);
  assert.notEqual(second.address, first.address);
  assert.equal(await readFile(join(dir.path, 'keys', 'replaced', `${first.address}.key`), 'utf8'), text);
  assert.deepEqual((await readdir(join(dir.path, 'keys'))).sort(), ['default.key', 'replaced']);
});

test('of many that make the same key at once one wins, and what it made stays', async () => {
  await using dir = await createTestDir();
  const results = await Promise.allSettled(
    Array.from({ length: 5 }, () => createKey(dir.path, 'default', false)),
  );
  const made = results.filter((result) => result.status === 'fulfilled');
  const refused = results.filter((result) => result.status === 'rejected');
  assert.equal(made.length, 1);
  assert.ok(refused.every(({ reason }) => (reason as AppError).code === 'KEY_EXISTS'));
  assert.deepEqual((await listKeys(dir.path)).keys, [made[0]!.value]);
  assert.deepEqual(await readdir(join(dir.path, 'keys')), ['default.key']);
});

test('no key, an open file, a damaged file, a name that is a path: each says so, and quotes no key', async () => {
  await using dir = await createTestDir();
  await assert.rejects(loadKey(dir.path, 'default'), (error: AppError) => {
    assert.equal(error.code, 'KEY_NOT_FOUND');
    assert.deepEqual(error.details, { hint: 'run "skerry key new"' });
    return true;
  });
  const { path } = await createKey(dir.path, 'default', false);
  await assert.rejects(loadKey(dir.path, 'work'), {
    message: 'there is no key named work here',
    details: { hint: 'known: default; "skerry key new --name work" makes it' },
  });
  await chmod(path, 0o644);
  await assert.rejects(loadKey(dir.path, 'default'), { code: 'INVALID_CONFIG' });
  await chmod(path, 0o600);
  await writeFile(path, `0x${'f'.repeat(64)}\n`);
  await assert.rejects(
    loadKey(dir.path, 'default'),
    (error: AppError) => error instanceof AppError && !/f{8}/.test(error.message),
  );
  for (const name of ['../x', 'a/b', '', '.hidden', 'x'.repeat(65)])
    await assert.rejects(loadKey(dir.path, name), { code: 'INVALID_PARAMETERS' });
});

test('a key that cannot be used hides no other, and says why', async () => {
  await using dir = await createTestDir();
  const home = join(dir.path, 'my home');
  const [kept, open, damaged] = [
    await createKey(home, 'kept', false),
    await createKey(home, 'open', false),
    await createKey(home, 'damaged', false),
  ];
  await chmod(open.path, 0o644);
  await writeFile(damaged.path, 'f'.repeat(70));
  const { keys, unusable } = await listKeys(home);
  assert.deepEqual(keys, [kept]);
  assert.deepEqual(unusable.find(({ name }) => name === 'open')?.error.details, {
    hint: `chmod 600 '${open.path}'`,
  });
  const said = unusable.map(({ name, error }) => `${name}: ${error.message}`).join('\n');
  assert.match(said, /^damaged: .* does not contain a private key\nopen: other users can read /);
  assert.doesNotMatch(said, /f{8}/);
});

test('no keys at all is an empty list', async () => {
  await using dir = await createTestDir();
  assert.deepEqual(await listKeys(dir.path), { keys: [], unusable: [] });
});
