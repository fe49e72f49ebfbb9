import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXIT } from '../exit-codes.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

test('where no node is, none is said to have left', async () => {
  await using home = await createTestDir();
  for (const role of ['compute', 'gateway', 'core', 'monitor']) {
    const environment = {
      SKERRY_HOME: home.path,
      // Nothing that a test starts listens there.
      ...{ SKERRY_COMPUTE_PORT: '1', SKERRY_CORE_PORT: '1' },
      ...{ SKERRY_GATEWAY_HTTP_PORT: '1', SKERRY_GATEWAY_HTTPS_PORT: '2', SKERRY_GATEWAY_API_PORT: '3' },
    };
    const { code, out, err } = await skerryHere(environment, ['leave', '--role', role, '--yes']);
    assert.deepEqual([code, out], [EXIT.notFound, ''], role);
    assert.match(err, new RegExp(`no ${role} node is on this machine.*NODE_NOT_FOUND`, 's'));
    assert.match(err, /--settings FILE/);
  }
});
