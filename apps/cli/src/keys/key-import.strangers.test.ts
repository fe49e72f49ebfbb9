import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { test } from 'node:test';
import { createSigner } from '@skerry/client';
import type { AppError } from '@skerry/protocol';
import { createTestDir } from '../testing/run.ts';
import { importKey, loadKey } from './key-store.ts';

const DIGITS = 'A1'.repeat(32);

test('S19: a key made elsewhere is kept as one made here, with or without 0x', async () => {
  await using dir = await createTestDir();
  for (const [name, text] of [
    ['one', DIGITS],
    ['two', `0x${DIGITS}\n`],
  ] as const) {
    const kept = await importKey(dir.path, name, text, false);
    assert.equal(kept.address, createSigner(`0x${DIGITS.toLowerCase()}`).address);
    assert.equal((await stat(kept.path)).mode & 0o777, 0o600);
    assert.equal(await readFile(kept.path, 'utf8'), `0x${DIGITS.toLowerCase()}\n`);
    assert.equal((await loadKey(dir.path, name)).address, kept.address);
  }
  await assert.rejects(importKey(dir.path, 'one', DIGITS, false), { code: 'KEY_EXISTS' });
});

test('S19: what is no key is refused, and never quoted', async () => {
  await using dir = await createTestDir();
  const secrets = [
    'word '.repeat(12),
    `0x${'f'.repeat(64)}`,
    '0'.repeat(64),
    DIGITS.slice(1),
    `${DIGITS}00`,
    '',
  ];
  for (const text of secrets) {
    await assert.rejects(importKey(dir.path, 'default', text, true), (error: AppError) => {
      assert.equal(error.code, 'INVALID_PARAMETERS');
      assert.doesNotMatch(error.message, /word word|f{8}|0{8}|A1A1/);
      return true;
    });
  }
  await assert.rejects(loadKey(dir.path, 'default'), { code: 'KEY_NOT_FOUND' });
});
