import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leave } from './shared.ts';

/** A test file whose process ends in the middle of a test, as if all were well. */
test('ends the process', () => leave());
test('would fail', () => assert.fail('it ran'));
