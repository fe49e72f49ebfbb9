import { test } from 'node:test';

/** A test file that passes and does not end. */
test('passes', () => {
  setInterval(() => {}, 1_000);
});
