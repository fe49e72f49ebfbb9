import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findClosest } from './closest.ts';

const WORDS = ['--name', '--image', '--memory', 'SKERRY_CORE_PORT', 'SKERRY_CORE_HOST'];

test('a slip of the hand finds the word that was meant', () => {
  assert.equal(findClosest('--nmae', WORDS), '--name');
  assert.equal(findClosest('--imge', WORDS), '--image');
  assert.equal(findClosest('SKERRY_CORE_PROT', WORDS), 'SKERRY_CORE_PORT');
});

test('what is like nothing, or too long, finds nothing', () => {
  assert.equal(findClosest('--zzzz', WORDS), undefined);
  assert.equal(findClosest('x'.repeat(100_000), ['x'.repeat(100_000)]), undefined);
  assert.equal(findClosest('name', []), undefined);
});
