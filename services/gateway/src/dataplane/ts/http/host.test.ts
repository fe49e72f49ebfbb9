import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRequestTarget } from './host.ts';

test('the target of a request is an address or a path, and takes no longer to read the longer it is', () => {
  const pathOf = (url: string) => parseRequestTarget(url, ['Host', 'a.test:80']).path;
  assert.deepEqual(['http://a.test', 'HTTP://A.test:8080/x?y', 'http://a.test?y', '/x#y', '*'].map(pathOf), [
    '/',
    '/x?y',
    '/?y',
    '/x#y',
    '*',
  ]);
  const startUs = process.cpuUsage().user;
  for (let turn = 0; turn < 50; turn++)
    for (const bad of [`http://${'a'.repeat(15_000)}#`, 'http://b.test/x', 'http://a.test/x#y', 'x'])
      assert.throws(() => pathOf(bad), { code: 'INVALID_HOST' });
  const spentMs = (process.cpuUsage().user - startUs) / 1_000;
  assert.ok(spentMs < 2_000, `${spentMs} ms`);
});
