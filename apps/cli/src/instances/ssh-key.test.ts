import assert from 'node:assert/strict';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { createTestDir } from '../testing/run.ts';
import { readSshKey } from './ssh-key.ts';

const PUBLIC = `ssh-ed25519 ${'A'.repeat(68)} me@here`;
const PRIVATE = '-----BEGIN OPENSSH PRIVATE KEY-----\nxxxx\n-----END OPENSSH PRIVATE KEY-----\n';

/** For keys that are named: no place is looked at. */
const NOWHERE = {
  sshDir: '/nonexistent',
  madeFile: '/nonexistent/key',
  onMade: () => assert.fail('a key was made'),
};

test('a public key, and the private one beside it', async () => {
  await using dir = await createTestDir();
  const file = join(dir.path, 'work.pub');
  await writeFile(file, `${PUBLIC}\n`);
  assert.deepEqual(await readSshKey(file, NOWHERE), { publicKey: PUBLIC, identityFile: undefined });
  await writeFile(join(dir.path, 'work'), PRIVATE);
  assert.deepEqual(await readSshKey(file, NOWHERE), {
    publicKey: PUBLIC,
    identityFile: join(dir.path, 'work'),
  });
});

test('a private key is refused, with where the public one is', async () => {
  await using dir = await createTestDir();
  const file = join(dir.path, 'my work');
  await writeFile(file, PRIVATE);
  const hintOf = async () => {
    const error = await readSshKey(file, NOWHERE).then(
      () => assert.fail('it was accepted'),
      (refusal: AppError) => refusal,
    );
    assert.equal(error.code, 'INVALID_SSH_KEY');
    assert.ok(!error.message.includes('xxxx'));
    return (error.details as { hint: string }).hint;
  };
  assert.equal(await hintOf(), `"ssh-keygen -y -f '${file}' > '${file}.pub'" writes the public key`);
  await writeFile(`${file}.pub`, PUBLIC);
  assert.equal(await hintOf(), `use ${file}.pub`);
});

test('the usual file where none is named; where there is none, a key is made once and kept', async () => {
  await using dir = await createTestDir();
  const madeFile = join(dir.path, 'config', 'ssh', 'id_ed25519');
  const told: string[] = [];
  const places = { sshDir: dir.path, madeFile, onMade: (file: string) => told.push(file) };
  const made = await readSshKey(undefined, places);
  assert.match(made.publicKey, /^ssh-ed25519 \S+ skerry$/);
  assert.equal(made.identityFile, madeFile);
  assert.equal((await stat(madeFile)).mode & 0o077, 0);
  assert.deepEqual(await readSshKey(undefined, places), made);
  assert.deepEqual(told, [madeFile]);
  await writeFile(join(dir.path, 'id_rsa.pub'), `ssh-rsa ${'B'.repeat(200)}`);
  assert.match((await readSshKey(undefined, places)).publicKey, /^ssh-rsa/);
  await writeFile(join(dir.path, 'id_ed25519.pub'), PUBLIC);
  assert.equal((await readSshKey(undefined, places)).publicKey, PUBLIC);
});

test('what is no key, no file, or far too large is refused', async () => {
  await using dir = await createTestDir();
  const file = join(dir.path, 'x.pub');
  for (const text of ['', 'hello', `${PUBLIC}\n${PUBLIC}`, 'x'.repeat(1_000_000)]) {
    await writeFile(file, text);
    await assert.rejects(readSshKey(file, NOWHERE), { code: 'INVALID_SSH_KEY' }, text.slice(0, 20));
  }
  await mkdir(join(dir.path, 'dir'));
  await assert.rejects(readSshKey(join(dir.path, 'dir'), NOWHERE), AppError);
  await assert.rejects(readSshKey(join(dir.path, 'none'), NOWHERE), { code: 'INVALID_PARAMETERS' });
});
