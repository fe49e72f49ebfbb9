import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { createTestDir } from '../testing.ts';
import { readSshKey } from './ssh-key.ts';

const PUBLIC = `ssh-ed25519 ${'A'.repeat(68)} me@here`;
const PRIVATE = '-----BEGIN OPENSSH PRIVATE KEY-----\nxxxx\n-----END OPENSSH PRIVATE KEY-----\n';

test('a public key, and the private one beside it', async () => {
  await using dir = await createTestDir();
  const file = join(dir.path, 'work.pub');
  await writeFile(file, `${PUBLIC}\n`);
  assert.deepEqual(await readSshKey(file), { publicKey: PUBLIC, identityFile: undefined });
  await writeFile(join(dir.path, 'work'), PRIVATE);
  assert.deepEqual(await readSshKey(file), { publicKey: PUBLIC, identityFile: join(dir.path, 'work') });
});

test('a private key is refused, with where the public one is', async () => {
  await using dir = await createTestDir();
  const file = join(dir.path, 'work');
  await writeFile(file, PRIVATE);
  const hintOf = async () => {
    const error = await readSshKey(file).then(
      () => assert.fail('it was accepted'),
      (refusal: AppError) => refusal,
    );
    assert.equal(error.code, 'INVALID_SSH_KEY');
    assert.ok(!error.message.includes('xxxx'));
    return (error.details as { hint: string }).hint;
  };
  assert.match(await hintOf(), /ssh-keygen -y/);
  await writeFile(`${file}.pub`, PUBLIC);
  assert.equal(await hintOf(), `use ${file}.pub`);
});

test('the usual file where none is named', async () => {
  await using dir = await createTestDir();
  await assert.rejects(readSshKey(undefined, dir.path), { code: 'INVALID_PARAMETERS' });
  await writeFile(join(dir.path, 'id_rsa.pub'), `ssh-rsa ${'B'.repeat(200)}`);
  assert.match((await readSshKey(undefined, dir.path)).publicKey, /^ssh-rsa/);
  await writeFile(join(dir.path, 'id_ed25519.pub'), PUBLIC);
  assert.equal((await readSshKey(undefined, dir.path)).publicKey, PUBLIC);
});

test('what is no key, no file, or far too large is refused', async () => {
  await using dir = await createTestDir();
  const file = join(dir.path, 'x.pub');
  for (const text of ['', 'hello', `${PUBLIC}\n${PUBLIC}`, 'x'.repeat(1_000_000)]) {
    await writeFile(file, text);
    await assert.rejects(readSshKey(file), { code: 'INVALID_SSH_KEY' }, text.slice(0, 20));
  }
  await mkdir(join(dir.path, 'dir'));
  await assert.rejects(readSshKey(join(dir.path, 'dir')), AppError);
  await assert.rejects(readSshKey(join(dir.path, 'none')), { code: 'INVALID_PARAMETERS' });
});
