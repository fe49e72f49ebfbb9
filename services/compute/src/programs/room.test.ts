import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { ControlGroups } from '../groups/control-groups.ts';
import { findTrees } from '../groups/trees.ts';
import { until } from '../testing/wait.ts';
import { PROGRAM_LIMITS } from './limits.ts';
import { callOf, TestPrograms } from './testing/setup.ts';

/** What is told of programs, and who gets, shares and leaves a sandbox, in real ones. */

/** Only what hangs takes as long. */
const HANG_MS = 100_000;
/** Enough that they are not all dead at once. */
const DYING = 16;
/** Of one program at the same time. */
const CALLS = 12;

let room: TestPrograms;
before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  room = await TestPrograms.open();
});
after(() => room[Symbol.asyncDispose]());

describe('the room', () => {
  test('environment, log and runs are told', async () => {
    const hash = room.add(
      'python3',
      'import os\ndef main(v):\n  print("noted", os.environ["OWN"])\n  return os.environ["OWN"]',
      { environment: { OWN: 'x' } },
    );
    const before = room.runs.length;
    assert.deepEqual(await room.outcomeOf(hash), { code: '200', text: 'x' });
    // An answer and what is written come by two ways: which is heard first is not said.
    const read = () => room.programs.listLog(hash).map(({ type, text }) => `${type} ${text}`);
    await until('its output is there', HANG_MS, () => read().length > 0);
    assert.deepEqual(read(), ['stdout noted x']);
    const run = room.runs[before]!;
    assert.deepEqual([run.program_hash, run.outcome, run.status, run.reason], [hash, 'answered', 200, null]);
    await room.outcomeOf(room.add('python3', 'def main(v):\n  raise ValueError("no \\0 way")'));
    assert.equal(room.runs.at(-1)?.reason?.message, 'ValueError: no \uFFFD way', 'a message can hold it');
  });

  test('the log has whole lines in their order: of a call that ends, of one that fails, and of one that exits', async () => {
    const hash = room.add(
      'python3',
      `import os, sys
def main(v):
  if v == "fail":
    raise ValueError("on purpose")
  os.write(1, "begun \u00e9".encode()[:-1])
  os.write(1, "\u00e9".encode()[-1:] + b", ended\\nno end")
  if v == "exit":
    os._exit(3)
  return v`,
    );
    const said = ['stdout begun é, ended', 'stdout no end'];
    const read = () => room.programs.listLog(hash).map(({ type, text }) => `${type} ${text}`);
    for (const [variables, count] of [
      ['answer', 1],
      ['answer', 2],
      ['fail', 2],
      ['exit', 3],
    ] as const) {
      await room.outcomeOf(hash, variables);
      const isThere = () => read().filter((line) => line === said[1]).length === count;
      await until('its output is there', HANG_MS, isThere);
    }
    const lines = read();
    assert.deepEqual(lines.slice(0, 4), [...said, ...said]);
    assert.match(lines[4]!, /^stderr Traceback/);
    const failure = lines.indexOf('stderr ValueError: on purpose');
    assert.ok(failure > 4, lines.join('\n'));
    assert.deepEqual(lines.slice(failure + 1, -1), said);
    assert.match(lines.at(-1)!, /^system the program exited/);
  });

  test('of what a program writes without end, the end is kept: so many lines, of a bounded length', async () => {
    const hash = room.add(
      'nodejs',
      `function main() {
  for (let n = 0; n < 3000; n++) console.log(n);
  console.log('x'.repeat(40000));
  console.log('last');
}`,
    );
    await room.outcomeOf(hash);
    const lines = () => room.programs.listLog(hash);
    await until('its last words are there', HANG_MS, () => lines().at(-1)?.text === 'last');
    const kept = lines().map(({ text }) => text);
    assert.equal(kept.length, PROGRAM_LIMITS.logTailLines);
    const long = kept.filter((text) => text.startsWith('x'));
    assert.equal(kept[kept.length - 2 - long.length], '2999');
    assert.ok(long.length >= 1 && long.every((text) => text.length <= PROGRAM_LIMITS.logLineChars));
    const silent = room.add(
      'nodejs',
      `function main() { for (let n = 0; n < 9; n++) console.log('y'.repeat(16000)); }`,
    );
    await room.outcomeOf(silent);
    const chars = () => room.programs.listLog(silent).reduce((sum, { text }) => sum + text.length, 0);
    await until('as much is kept as may be', HANG_MS, () => chars() >= 64_000);
    assert.ok(chars() <= PROGRAM_LIMITS.logTailChars);
  });

  test('calls at the same time share few sandboxes, and each gets its own answer', async () => {
    // With room for a sandbox for each of them.
    await using own = await TestPrograms.open({ spares: 0, memoryMib: 65_536 });
    const hash = own.add(
      'nodejs',
      'async function main({ n }) { await new Promise((done) => setTimeout(done, 20)); return n; }',
    );
    const texts = await Promise.all(
      Array.from({ length: CALLS }, async (_, n) => (await own.outcomeOf(hash, { n })).text),
    );
    assert.deepEqual(
      texts,
      Array.from({ length: CALLS }, (_, n) => String(n)),
    );
    const { sandboxes } = own.programs;
    assert.ok(sandboxes >= 1 && sandboxes <= PROGRAM_LIMITS.sandboxesPerProgram, `${sandboxes}`);
  });

  test('whether programs run is found out in a sandbox that is gone afterwards', async () => {
    await using own = await TestPrograms.open({ spares: 0 });
    await own.programs.check();
    assert.equal(own.programs.sandboxes, 0);
  });

  test('who was not called for longest makes room; who can never fit is told so', async () => {
    await using small = await TestPrograms.open({ memoryMib: 200, spares: 0 });
    const [first, second] = ['1', '2'].map((n) =>
      small.add('python3', `def main(v):\n  return ${n}`, { memoryMib: 100 }),
    );
    const starts = [];
    for (const hash of [first!, first!, second!, first!]) starts.push((await small.run(hash)).start);
    assert.deepEqual(starts, ['cold', 'warm', 'cold', 'cold']);
    assert.equal((await small.outcomeOf(small.add('python3', 'x', { memoryMib: 400 }))).code, 'NO_RUNNER');
  });

  test('too many calls that wait are turned away, and closing lets nobody hang', async () => {
    const own = await TestPrograms.open({ spares: 0 });
    const hash = own.add('python3', 'import time\ndef main(v):\n  time.sleep(3600)');
    const calls = Array.from({ length: 80 }, () => own.outcomeOf(hash));
    const refused = await Promise.race(calls);
    assert.equal(refused.code, 'OVERLOADED');
    await own[Symbol.asyncDispose]();
    const codes = new Set((await Promise.all(calls)).map(({ code }) => code));
    assert.deepEqual([...codes].sort(), ['OVERLOADED', 'PROGRAM_CRASHED', 'SHUTTING_DOWN']);
  });

  test('a blank sandbox waits for who comes first', async () => {
    await using own = await TestPrograms.open();
    while (own.programs.spares < own.programs.runtimes.length)
      await new Promise((done) => setTimeout(done, 20));
    const hash = own.add('python3', 'def main(v):\n  return 1');
    assert.equal((await own.programs.run(hash, callOf(), 'test')).start, 'spare');
  });

  test('a node that is killed takes its sandboxes along, and clears up when it is back', async (t) => {
    const child = fork(join(import.meta.dirname, 'testing/holder.ts'), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    t.after(() => endProcess(child, 'SIGKILL'));
    const { nodeId, groups } = await awaitReady<{ nodeId: string; groups: string }>(child, 'the holder');
    const own = readdirSync(groups).filter((name) => /^[0-9a-f]{8}-/.test(name));
    const pids = own.flatMap(
      (name) => readFileSync(join(groups, name, 'cgroup.procs'), 'utf8').match(/\d+/g) ?? [],
    );
    assert.ok(own.length === 3 && pids.length >= 3);
    await endProcess(child, 'SIGKILL');
    await until('all of it is gone', HANG_MS, () => !pids.some((pid) => existsSync(`/proc/${pid}`)));
    await using again = await TestPrograms.open({ nodeId, spares: 0 });
    assert.equal((await again.outcomeOf(again.add('python3', 'print(1)'))).code, '200');
    assert.deepEqual(
      own.filter((name) => existsSync(join(groups, name))),
      [],
    );
  });

  test('groups are gone once they are cleared, though what is in them is still dying then', async (t) => {
    const groups = new ControlGroups(findTrees()!, `skerry-test-${process.pid}`);
    groups.prepare();
    const { directories } = groups.create('one', { memoryBytes: 64 * 1024 ** 2, tasks: 64, cpus: 1 });
    const children = Array.from({ length: DYING }, () => spawn('sleep', ['infinity'], { stdio: 'ignore' }));
    t.after(() => Promise.all(children.map((child) => endProcess(child, 'SIGKILL'))));
    for (const directory of directories)
      for (const { pid } of children) writeFileSync(join(directory, 'cgroup.procs'), String(pid));
    await groups.clear();
    assert.deepEqual(
      directories.filter((directory) => existsSync(join(directory, '..'))),
      [],
    );
  });

  test('nothing is left behind in the kernel', async () => {
    const own = await TestPrograms.open();
    const listHomes = () => own.groupHomes.filter((home) => existsSync(home));
    try {
      await own.outcomeOf(own.add('python3', 'print(1)'));
      assert.deepEqual(listHomes(), own.groupHomes);
    } finally {
      await own[Symbol.asyncDispose]();
    }
    assert.deepEqual(listHomes(), []);
  });
});
