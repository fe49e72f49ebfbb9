import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRoutable, parseInstance } from './instance.ts';
import { hashOf } from './testing/setup.ts';

test('S5: an instance that can never start is not active', () => {
  const routable = (phase: string, code: string | null) =>
    isRoutable(
      parseInstance(
        {
          ...{ instance_id: hashOf('5330dcefe18'), created_at: 1, ipv6: '2001:db8::1', desired: 'running' },
          ...{ phase, reason: code === null ? null : { code, message: 'x' } },
        },
        { allowLocal: true, allowPrivate: false },
      ),
    );
  assert.equal(routable('failed', 'UNKNOWN_IMAGE'), false);
  // What a node is out of may pass: a machine answers the moment it can.
  for (const [phase, code] of [
    ['failed', 'NO_CAPACITY'],
    ['failed', 'STORED'],
    ['starting', null],
    ['running', 'STORAGE_FULL'],
  ] as const)
    assert.equal(routable(phase, code), true, `${phase} ${code}`);
});
