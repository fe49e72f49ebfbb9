import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { GuestGroups } from './guest-groups.ts';
import { clearLeftGroups, noteGroups } from './left-groups.ts';
import { findTrees } from './trees.ts';

const MIB = 1024 ** 2;
const LIMITS = { memoryBytes: 128 * MIB, tasks: 64, cpus: 0.5, weight: 2, maySwap: true };

/** Settings of a group, wherever its tree has them. */
const settingsOf = (directories: readonly string[], ...files: string[]) =>
  files.flatMap((file) =>
    directories
      .map((directory) => join(directory, file))
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, 'utf8').trim()),
  );

test('the group of a guest outlives the node, has its limits, and is taken away when the guest is gone', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-guest-groups-'));
  const guest = spawn('sleep', ['infinity'], { stdio: 'ignore' });
  const trees = findTrees()!;
  const groups = new GuestGroups(trees, `skerry-test-${process.pid}`);
  try {
    noteGroups(dataDir, groups.homes);
    groups.prepare();
    const { directories: held } = groups.create('held', LIMITS);
    const expected =
      trees.version === 1
        ? ['2048', '50000', String(LIMITS.memoryBytes), '64']
        : ['200', '50000 100000', String(LIMITS.memoryBytes), '64'];
    const files =
      trees.version === 1
        ? ['cpu.shares', 'cpu.cfs_quota_us', 'memory.limit_in_bytes', 'pids.max']
        : ['cpu.weight', 'cpu.max', 'memory.max', 'pids.max'];
    assert.deepEqual(settingsOf(held, ...files), expected);
    for (const one of held) writeFileSync(join(one, 'cgroup.procs'), String(guest.pid));

    const entering = groups.create('entering', LIMITS);
    const { directories: gone } = groups.create('gone', LIMITS);
    assert.ok(
      entering.directories.every((one) => existsSync(one)),
      'its guest is about to enter it',
    );
    entering[Symbol.dispose]();
    assert.ok([...held, ...gone].every((one) => existsSync(one)));
    // The next process of the node, or none.
    new GuestGroups(trees, `skerry-test-${process.pid}`).prepare();
    await clearLeftGroups(dataDir);
    assert.equal(guest.exitCode ?? guest.signalCode, null, 'it runs as before');
    assert.ok(held.every((one) => existsSync(one)));
    assert.ok(gone.every((one) => !existsSync(one)));

    guest.kill('SIGKILL');
    await once(guest, 'exit');
    await clearLeftGroups(dataDir);
    assert.ok(groups.homes.every((home) => !existsSync(home)));
    assert.ok(!existsSync(join(dataDir, 'programs', 'control-groups.json')));
  } finally {
    guest.kill('SIGKILL');
    await rm(dataDir, { recursive: true, force: true });
  }
});

/** What holds much memory, which the kernel takes back for some time after it is killed. */
const LARGE_MIB = 512;
const LARGE = `
const held = Buffer.alloc(${LARGE_MIB} * ${MIB}, 1);
process.stdout.write('held');
setInterval(() => held, 1e9);`;

test('the group of a guest that was just ended is taken away once its memory is given back', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'skerry-guest-groups-'));
  const guest = spawn(process.execPath, ['-e', LARGE], { stdio: ['ignore', 'pipe', 'pipe'] });
  const groups = new GuestGroups(findTrees()!, `skerry-test-${process.pid}-ended`);
  try {
    await awaitOutput(guest, 'the large process', hear(guest, ['stderr']));
    noteGroups(dataDir, groups.homes);
    using group = groups.create('large', { ...LIMITS, memoryBytes: 2 * LARGE_MIB * MIB });
    for (const one of group.directories) writeFileSync(join(one, 'cgroup.procs'), String(guest.pid));
    guest.kill('SIGKILL');
    // As a node finds that a machine is gone (vm/process.ts).
    while (existsSync(`/proc/${guest.pid}/exe`)) await setImmediate();
    await clearLeftGroups(dataDir);
    assert.ok(groups.homes.every((home) => !existsSync(home)));
    assert.ok(!existsSync(join(dataDir, 'programs', 'control-groups.json')));
  } finally {
    guest.kill('SIGKILL');
    await rm(dataDir, { recursive: true, force: true });
  }
});
