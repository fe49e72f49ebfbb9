import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playInNamespace } from '../testing/namespaces.ts';

test("a node's network: firewall, addresses, both ways of IPv4, restart", async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await playInNamespace('network-scenario.ts');
});
