import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ControlGroups } from './control-groups.ts';
import { clearLeftGroups, noteGroups } from './left-groups.ts';
import { findTrees, type GroupTrees } from './trees.ts';

const LIMITS = { memoryBytes: 64 * 1024 ** 2, tasks: 64, cpus: 2 };
const CONTAINER = `skerry-container-${process.pid}`;

/** The trees of a container with half a processor, where version 1 has one for processors. */
function enterContainer(trees: GroupTrees): GroupTrees & Disposable {
  if (trees.version === 2) return { ...trees, [Symbol.dispose]: () => {} };
  const cpu = join(trees.bases.cpu, CONTAINER);
  mkdirSync(cpu);
  writeFileSync(join(cpu, 'cpu.cfs_quota_us'), '50000');
  return { ...trees, bases: { ...trees.bases, cpu }, [Symbol.dispose]: () => rmdirSync(cpu) };
}

test('in a container whose processors are limited a program gets what there is', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  using trees = enterContainer(findTrees()!);
  const groups = new ControlGroups(trees, `skerry-test-${process.pid}`);
  groups.prepare();
  const group = groups.create('one', LIMITS);
  group.limit({ ...LIMITS, cpus: 1 });
  group.freeze();
  group.thaw();
  const quotas = group.directories
    .map((directory) => join(directory, 'cpu.cfs_quota_us'))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8').trim());
  assert.deepEqual(quotas, trees.version === 1 ? ['50000'] : []);
  // What a process leaves that is killed, the next one clears away.
  const next = new ControlGroups(trees, `skerry-test-${process.pid}`);
  next.prepare();
  await next.clear();
  assert.deepEqual(
    group.directories.filter((directory) => existsSync(directory)),
    [],
  );
});

test('what a killed node left is taken away by the next one of its folder, wherever that is started, and by no copy', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-groups-'));
  const [dataDir, copy] = ['node', 'copy'].map((name) => join(directory, name)) as [string, string];
  mkdirSync(join(dataDir, 'programs'), { recursive: true });
  const left = spawn('sleep', ['infinity'], { stdio: 'ignore' });
  try {
    // Elsewhere than where this process would make its own.
    using trees = enterContainer(findTrees()!);
    const groups = new ControlGroups(trees, `skerry-test-${process.pid}`);
    noteGroups(dataDir, groups.homes);
    groups.prepare();
    const { directories } = groups.create('one', { ...LIMITS, cpus: 0.5 });
    for (const one of directories) writeFileSync(join(one, 'cgroup.procs'), String(left.pid));

    await cp(dataDir, copy, { recursive: true });
    await clearLeftGroups(copy);
    assert.ok(directories.every((one) => existsSync(one)));

    const ended = once(left, 'exit');
    await clearLeftGroups(dataDir);
    assert.deepEqual(await ended, [null, 'SIGKILL']);
    assert.ok(groups.homes.every((home) => !existsSync(home)));
    assert.ok(!existsSync(join(dataDir, 'programs', 'control-groups.json')));
  } finally {
    left.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
});
