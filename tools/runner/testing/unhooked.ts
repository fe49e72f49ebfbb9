import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ran } from './shared.ts';

/** A test file that passes only where what others do before their tests is not done, and what they do after them is. */
test('has nothing of the other one', () => assert.deepEqual(ran, []));
