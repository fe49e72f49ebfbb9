import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ran } from './shared.ts';

/** A test file that passes only where the other one did not run before. */
test('second has its process for itself', () => {
  ran.push('second');
  assert.deepEqual(ran, ['second']);
});
