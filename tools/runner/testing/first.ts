import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ran } from './shared.ts';

/** A test file that passes only where the other one did not run before. */
test('first has its process for itself', () => {
  ran.push('first');
  assert.deepEqual(ran, ['first']);
});
