import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isService, scopeCommand } from './guest-scope.ts';

test('a process of a service is told from others, by either version of control groups', () => {
  for (const own of [
    '0::/system.slice/skerry-compute.service\n',
    '0::/system.slice/skerry-compute.service/daemon\n',
    '4:memory:/\n1:name=systemd:/system.slice/skerry-compute.service\n0::/\n',
  ])
    assert.equal(isService(own), true, own);
  for (const other of [
    '',
    '0::/\n',
    '0::/user.slice/user-0.slice/session-1.scope\n',
    '0::/skerry-guests.slice/run-r1.scope\n',
    '4:memory:/system.slice/a.service\n',
  ])
    assert.equal(isService(other), false, other);
});

test('a scope holds its guest to what it has', () => {
  const limits = { memoryBytes: 1_024, tasks: 130, cpus: 2.5, weight: 2 };
  const command = scopeCommand('a machine', limits);
  for (const property of ['CPUQuota=250%', 'CPUWeight=200', 'IOWeight=200', 'MemoryMax=1024', 'TasksMax=130'])
    assert.ok(command.includes(`--property=${property}`), property);
  assert.ok(scopeCommand('a machine', { ...limits, weight: 4_096 }).includes('--property=CPUWeight=10000'));
});
