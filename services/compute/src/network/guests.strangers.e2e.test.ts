import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playInNamespace } from '../testing/namespaces.ts';

test('M5, M11: a guest reaches nothing private, nobody hears it as a router, and it has no more than its share', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await playInNamespace('guests-scenario.ts');
});
