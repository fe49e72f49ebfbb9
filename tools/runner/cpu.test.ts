import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { ROOT } from '../source.ts';
import { budgetOf, listGrown, sumUp, tabulate } from './budget.ts';
import { CpuAccounts, type CpuMeter, findGroup, SampledMeter } from './cpu.ts';
import { markedEnvironment, ProcessTree } from './processes.ts';

/** What the daemon of the fixture uses by itself. */
const BURNT_SECONDS = 0.5;
/** It is looked only when it is asked, when the daemon has done its work. */
const NEVER_MS = 2 ** 31 - 1;

/** What is counted of a daemon that has done its work, and lives. It begins when it is watched, however late that is. */
async function measure(
  meterOf: (pid: number, tree: ProcessTree) => CpuMeter,
  isEnough = (_seconds: number) => true,
): Promise<number> {
  const mark = randomUUID();
  const child = spawn(process.execPath, [join(ROOT, 'tools/runner/testing/burns.ts')], {
    env: markedEnvironment(mark, process.env),
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  const exited = once(child, 'exit');
  const meter = meterOf(child.pid!, new ProcessTree(child.pid!, mark));
  try {
    child.stdin.write('begin');
    const lines = createInterface({ input: child.stdout });
    for await (const line of lines) if (line.includes('burnt')) break;
    return await until('it is counted', () => meter.read(), isEnough);
  } finally {
    child.stdin.end();
    child.stdout.resume();
    await exited;
    meter.close();
  }
}

test('what a daemon takes whose parent has ended is counted by groups', async (t) => {
  const accounts = new CpuAccounts();
  try {
    const before = accounts.readTotal();
    if (before === undefined) return t.skip('control groups cannot be made here');
    const seconds = await measure((pid, tree) => accounts.meter(pid, tree));
    assert.ok(seconds >= BURNT_SECONDS, `${seconds} s`);
    assert.ok(accounts.readTotal()! - before >= seconds);
  } finally {
    accounts.close();
  }
});

test('where there are no groups, it is seen', async () => {
  const accounts = new CpuAccounts('/nowhere');
  assert.deepEqual([accounts.isExact, accounts.readTotal()], [false, undefined]);
  // One look in four finds what no parent and no session tells of.
  await measure(
    (pid, tree) => new SampledMeter(pid, tree, NEVER_MS),
    (seconds) => seconds >= 0.9 * BURNT_SECONDS,
  );
});

test('the group of version 2 is found beside those of version 1, also below the top', () => {
  const mounts =
    'cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n';
  assert.equal(findGroup(mounts, '1:cpu:/\n0::/\n'), '/sys/fs/cgroup/unified/');
  assert.equal(findGroup(mounts, '0::/user.slice/a.scope\n'), '/sys/fs/cgroup/unified/user.slice/a.scope');
  assert.equal(findGroup(mounts.split('\n')[0]!, '1:cpu:/\n'), undefined);
});

test('a file that grew is named, on a slow machine as well; one that all others are as slow as is not', () => {
  const spent = [...Array(9).keys()].map((index) => ({ what: `${index}`, seconds: 20 }));
  const budget = budgetOf(sumUp(spent));
  const times = (factor: number) => spent.map(({ what, seconds }) => ({ what, seconds: seconds * factor }));
  assert.deepEqual(listGrown(times(1.3), budget), []);
  assert.deepEqual(listGrown(times(3), budget), []);
  const grown = times(3).map((one) => (one.what === '4' ? { ...one, seconds: 120 } : one));
  assert.deepEqual(listGrown(grown, budget), ['4 took 120 CPU s, instead of 60']);
  assert.deepEqual(listGrown([{ what: 'new', seconds: 30 }], budget), ['new took 30 CPU s, has no budget']);
  assert.deepEqual(sumUp([...spent, { what: '4', seconds: 5 }])[0], { what: '4', seconds: 25 });
});

test('a table tells the heaviest, what no file took, and how much of the machine was used', () => {
  const sums = sumUp([...Array(27).keys()].map((index) => ({ what: `${index}`, seconds: index })));
  const lines = tabulate(sums, 400, { seconds: 250, cores: 2 }).split('\n');
  assert.equal(lines[0], 'CPU s of 400 in all, 80 % of what 2 cores have in 250 s:');
  assert.deepEqual([lines[1], lines.at(-2)], ['    26.0  26', '     1.0  2 others']);
  assert.equal(lines.at(-1), '    49.0  the runner, with what it checks and compiles first');
  // Without control groups, nobody knows what the runner took; and a run may take no second.
  const [total, ...rows] = tabulate(sums.slice(0, 2), undefined, { seconds: 0.2, cores: 1_000 }).split('\n');
  assert.equal(total, 'CPU s of 51 in all, 26 % of what 1000 cores have in 0 s:');
  assert.deepEqual(rows, ['    26.0  26', '    25.0  25']);
});
