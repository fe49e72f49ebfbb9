import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playInNamespace } from '../testing/namespaces.ts';

test('M6: QEMU and the tools for images have no rights, and see nothing but their own files', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await playInNamespace('confined-scenario.ts');
});
