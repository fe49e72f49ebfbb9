import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ControlGroups, findTrees, type GroupTrees } from './control-groups.ts';

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
