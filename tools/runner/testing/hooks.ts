import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sha256Hex } from '@skerry/protocol';
import { ran } from './shared.ts';

/** A test file with something to do before and after its tests, which loads a module that takes a moment to be ready. */
before(() => void ran.push('before'));
beforeEach(() => void ran.push('before each'));
after(() => void ran.splice(0));

test('has what it does before', () => {
  assert.deepEqual(ran, ['before', 'before each']);
  assert.equal(sha256Hex('').length, 64);
});
