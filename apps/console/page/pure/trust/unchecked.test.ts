import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verdictOn } from './unchecked.ts';

const failed = (code: string) => ({ kind: 'failed', failure: { code, message: '' } }) as const;
const proven = (contradictions: readonly unknown[]) =>
  ({ kind: 'proven', value: { contradictions } }) as const;

test('a message is called forged where its signature says so, and not where nobody answered', () => {
  assert.equal(verdictOn({ kind: 'waiting' }, 'processed'), 'waiting');
  assert.equal(verdictOn(proven([]), 'processed'), 'proven');
  assert.equal(verdictOn(proven(['type']), 'processed'), 'refuted');
  for (const code of ['INVALID_SIGNATURE', 'HASH_MISMATCH', 'INVALID_CONTENT', 'UNEXPECTED_ANSWER'])
    assert.equal(verdictOn(failed(code), 'processed'), 'refuted', code);
  for (const code of [
    'UPSTREAM_UNAVAILABLE',
    'RATE_LIMITED',
    'OVERLOADED',
    'DATABASE_UNAVAILABLE',
    'INTERNAL',
    'LIST_TOO_COSTLY',
    'CONTENT_NOT_FOUND',
  ])
    assert.equal(verdictOn(failed(code), 'processed'), 'unchecked', code);
  assert.equal(verdictOn(failed('FILE_NOT_FOUND'), 'forgotten'), 'gone');
});
