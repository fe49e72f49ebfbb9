import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playInNamespace } from '../testing/namespaces.ts';

const DEADLINE_MS = 180_000;

test('a custom domain with a real name server: proof, both families, ssh, two owners, detach', {
  timeout: DEADLINE_MS,
}, async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await playInNamespace('domains-scenario.ts');
});
