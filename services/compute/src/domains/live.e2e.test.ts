import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playInNamespace } from '../testing/namespaces.ts';

test('a custom domain with a real name server: proof, both families, ssh, two owners, detach', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await playInNamespace('domains-scenario.ts');
});
