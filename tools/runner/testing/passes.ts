import { test } from 'node:test';

/** A test file that does no harm. */
test('passes', () => {});
