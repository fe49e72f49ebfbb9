import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playInNamespace } from '../testing/namespaces.ts';

const DEADLINE_MS = 120_000;

test("a node's network: firewall, addresses, both ways of IPv4, restart", {
  timeout: DEADLINE_MS,
}, async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await playInNamespace('network-scenario.ts');
});
