import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { ROOT } from '../source.ts';
import { batch } from './batches.ts';
import { errorsOf, tellErrors } from './closing.ts';
import { busyFactor } from './limits.ts';
import { isAlive } from './testing/alive.ts';

/** The runner as it is started by `npm test`, with files that do what no test should. */

const LIMIT_MAX_SECONDS = 60;

interface Run {
  readonly output: string;
  readonly code: number | null;
  /** Of processes that the file said it has. */
  readonly pids: readonly number[];
}

const startRunner = (fixtures: readonly string[], options: readonly string[], env: NodeJS.ProcessEnv) =>
  spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      'tools/test.ts',
      ...fixtures.map((fixture) => `tools/runner/testing/${fixture}`),
      ...options,
    ],
    { cwd: ROOT, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] },
  );

async function runFixtures(fixtures: readonly string[], ...options: string[]): Promise<Run> {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-runner-'));
  const pids = join(dir, 'pids');
  try {
    const child = startRunner(fixtures, options, { TEST_PIDS: pids });
    const code = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const output = await text(child.stdout);
    return {
      output,
      code: await code,
      pids: existsSync(pids) ? (JSON.parse(readFileSync(pids, 'utf8')) as number[]) : [],
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The limit is twice as long each time, until the file gets as far as to hang before it: how fast the machine is says nothing. */
async function runHanging(limit: '--file-limit' | '--run-limit'): Promise<Run> {
  for (let seconds = 5; ; seconds *= 2) {
    const run = await runFixtures(['hangs.ts'], limit, String(seconds));
    const hung = run.pids.length > 0 && run.output.includes('the grandchild says this');
    if (hung || seconds > LIMIT_MAX_SECONDS) return run;
  }
}

/** The same, until the limit is longer than this machine stands still between two tests. */
async function runIdling(fixtures: readonly string[], summary: RegExp): Promise<Run> {
  for (let seconds = 1; ; seconds *= 2) {
    const run = await runFixtures(fixtures, '--idle-limit', String(seconds));
    if (summary.test(run.output) || seconds > LIMIT_MAX_SECONDS) return run;
  }
}

test('F10: a file that hangs is ended with all that it started, and it is said what was open and what was printed', async () => {
  const { output, code, pids } = await runHanging('--file-limit');
  assert.equal(pids.length, 3);
  assert.deepEqual(pids.filter(isAlive), []);
  assert.equal(code, 1);
  assert.match(output, /timed out after \d+ s/);
  assert.match(output, /still open: one that waits for ever \(line \d+\)/);
  assert.match(output, /the grandchild says this/);
  assert.match(output, /sleep 1000/);
  const closing = output.slice(output.indexOf('\nCPU s of '));
  assert.match(
    closing,
    /^tools\/runner\/testing\/hangs\.ts:\nits last words:\n[\s\S]*the grandchild says this/m,
  );
  assert.match(output, /^1 passed, \d failed, 0 skipped$/m);
});

test('F10: the run has a limit of its own: it says what was running, ends it, and fails', async () => {
  const { output, code, pids } = await runHanging('--run-limit');
  assert.equal(pids.length, 3);
  assert.deepEqual(pids.filter(isAlive), []);
  assert.equal(code, 1);
  assert.match(output, /The run took longer than .*; running: tools\/runner\/testing\/hangs\.ts/);
  assert.match(output, /^1 passed, \d failed, 0 skipped$/m);
});

test('F10: what a killed run left is ended by the next one', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-runner-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const env = { TEST_PIDS: join(dir, 'pids') };
  // As of a run of its own: the one that this test is part of lives.
  const killed = startRunner(['hangs.ts'], [], { ...env, SKERRY_TEST_TREE: undefined });
  t.after(() => killed.kill('SIGKILL'));
  const said = await until(
    'it hangs',
    () => (existsSync(env.TEST_PIDS) ? readFileSync(env.TEST_PIDS, 'utf8') : ''),
    (text) => text.endsWith(']'),
  );
  const pids = JSON.parse(said) as number[];
  t.after(() => pids.filter(isAlive).forEach((pid) => void process.kill(pid, 'SIGKILL')));
  killed.kill('SIGKILL');
  const { output, code } = await runFixtures(['passes.ts']);
  assert.equal(code, 0);
  // Without control groups, one that has nothing of the run's environment cannot be told from others.
  const known = output.includes('control groups, which count exactly, cannot be made')
    ? pids.slice(0, 2)
    : pids;
  await until(
    'they are gone',
    () => known.filter(isAlive),
    ({ length }) => length === 0,
  );
});

test('F10: a file that passes and leaves a process behind fails, and the process is named and ended', async () => {
  const { output, code, pids } = await runFixtures(['leaves.ts']);
  assert.equal(pids.length, 1);
  assert.deepEqual(pids.filter(isAlive), []);
  assert.equal(code, 1);
  assert.match(output, /FAILED: tools\/runner\/testing\/leaves\.ts left 1 processes behind/);
  assert.ok(output.includes(`${pids[0]}: sleep 1000`));
});

test('F10: a failure that leaves a server open is told with its words and ends', async () => {
  const summary = /^1 passed, 2 failed, 2 skipped$/m;
  const { output, code } = await runIdling(['fails.ts'], summary);
  assert.equal(code, 1);
  assert.match(output, /one is not two/);
  assert.match(output, /NOT RUN HERE: is skipped: for a reason/);
  assert.match(output, /NOT RUN HERE: are skipped: for another reason/);
  assert.match(output, /something that it opened is still open/);
  assert.match(output, summary);
});

test('where what tests need cannot be made, the closing lines say why, once', async () => {
  const why =
    /^ *the suite what cannot be made: failed running before hook\nError: there is no such thing\n/gm;
  const alone = await runFixtures(['unready.ts']);
  assert.equal(alone.output.match(why)?.length, 1, alone.output);
  assert.match(alone.output, /^FAILED: needs it \(five\) \(tools\/runner\/testing\/unready\.ts\)$/m);
  assert.match(alone.output, /^0 passed, 6 failed, 0 skipped$/m);
  assert.equal(alone.code, 1);
  // Once where they share a process, and once where it runs again in its own.
  const beside = await runFixtures(['unready.ts', 'passes.ts']);
  assert.equal(beside.output.match(why)?.length, 2, beside.output);
  assert.match(beside.output, /^1 passed, 6 failed, 0 skipped$/m);
});

test('the closing lines tell the first error of each file, why a suite failed before others, and where more are', async () => {
  const { output, code } = await runFixtures(['breaks.ts', 'unready.ts']);
  const [breaks, unready] = ['breaks', 'unready'].map((name) => `tools/runner/testing/${name}.ts`);
  const reason = output.indexOf(`\n${unready}:\nthe suite what cannot be made: failed running before hook\n`);
  const first = output.indexOf(`\n${breaks}:\nbreaks (one): Error: one is broken\n`);
  const more = output.indexOf(`\nErrors that are told above only: 9, in ${unready} (5), ${breaks} (4)\n`);
  assert.ok(0 < reason && reason < first && first < more, output);
  assert.ok(more < output.indexOf('\nFAILED: '), output);
  assert.doesNotMatch(output, /^breaks \(two\):/m);
  assert.equal(code, 1);
});

test('of a file that fails without an error of a test, its step, its error and its last words are told', () => {
  const lines = Array.from({ length: 30 }, (_, n) => `noise ${n} ${'x'.repeat(9_999)}`);
  const output = ['[1.0 s] a step', 'Error: no', ...lines].join('\n');
  const [told, ...more] = errorsOf({ failed: ['it'], errors: [], output });
  assert.deepEqual(more, []);
  assert.match(told!, /^its last words:\n\[1\.0 s\] a step\nError: no\n\[…\]\nnoise 16 /);
  assert.ok(told!.length < 10_000, `${told!.length} characters`);
  // All of it is told again.
  const [again] = tellErrors([{ file: 'one.test.ts', errors: [told!], hasReason: false }]);
  assert.equal(again, `one.test.ts:\n${told}`);
  assert.deepEqual(errorsOf({ failed: [], errors: [], output }), []);
  assert.deepEqual(errorsOf({ failed: ['it'], errors: ['why'], output }), ['why']);
});

test('of many files that fail, some are told, and it is said of how many more there are errors', () => {
  const files = Array.from({ length: 40 }, (_, n) => ({
    ...{ file: `${n}.test.ts`, hasReason: n === 39 },
    errors: n === 0 ? [] : [Array.from({ length: 100 }, (_, line) => `${n} line ${line}`).join('\n'), 'more'],
  }));
  const told = tellErrors(files);
  assert.deepEqual(
    told.slice(0, -1).map((text) => text.split('\n', 2)),
    [39, 1, 2, 3, 4, 5, 6, 7].map((n) => [`${n}.test.ts:`, `${n} line 0`]),
  );
  assert.deepEqual(new Set(told.slice(0, -1).map((text) => text.split('\n').length)), new Set([21]));
  assert.match(
    told.at(-1)!,
    /^Errors that are told above only: 70, in 39\.test\.ts \(1\), 1\.test\.ts \(1\)/,
  );
  assert.match(told.at(-1)!, /, 8\.test\.ts \(2\), .*, 19 more files$/);
  assert.deepEqual(tellErrors([{ file: 'one.test.ts', errors: ['why'], hasReason: false }]), [
    'one.test.ts:\nwhy',
  ]);
});

test('a file fails whose process ends before its tests have, with whatever code, and those that share it lose nothing', async () => {
  const told = /FAILED: tools\/runner\/testing\/exits\.ts ended before its tests had/;
  const alone = await runFixtures(['exits.ts']);
  assert.match(alone.output, told);
  assert.match(alone.output, /^0 passed, 1 failed, 0 skipped$/m);
  assert.equal(alone.code, 1);
  const beside = await runFixtures(['exits.ts', 'passes.ts']);
  assert.match(
    beside.output,
    /failed in one process; each runs again in its own: .* ended before its tests had/,
  );
  assert.match(beside.output, told);
  assert.match(beside.output, /^1 passed, 1 failed, 0 skipped$/m);
  assert.equal(beside.code, 1);
});

test('a file without a test fails, by itself and beside others', async () => {
  const told = /FAILED: tools\/runner\/testing\/(?:empty\.ts has no test|shared\.ts .*, or has none)/;
  for (const fixtures of [['empty.ts'], ['empty.ts', 'passes.ts'], ['shared.ts']]) {
    const { output, code } = await runFixtures(fixtures);
    assert.match(output, told);
    assert.ok(output.includes(`\n${fixtures.length - 1} passed, 1 failed, 0 skipped\n`), output);
    assert.equal(code, 1);
  }
});

test('limits are longer on a machine that others keep busy, up to a bound, and never shorter', () => {
  assert.equal(busyFactor([0, 0], 2), 1);
  assert.equal(busyFactor([4, 3], 2), 1);
  assert.equal(busyFactor([3, 8], 2), 2);
  assert.equal(busyFactor([100, 8], 2), 4);
});

test('of files that share a process, those that do not pass run again, and what they do in their own counts', async () => {
  const { output, code } = await runFixtures(['passes.ts', 'first.ts', 'second.ts', 'breaks.ts']);
  assert.match(
    output,
    /failed in one process; each that did not pass runs again in its own: breaks .*; second has its process for itself/,
  );
  const alone = [...output.matchAll(/\n\ntools\/runner\/testing\/(\S+)\.ts \(/g)].map(([, name]) => name);
  assert.deepEqual(alone, ['breaks', 'second']);
  assert.match(output, /^3 passed, 5 failed, 0 skipped$/m);
  assert.equal(code, 1);
});

test('what is thrown beside the tests of files that share a process is told in full, and fails the one that throws it', async () => {
  const { output, code } = await runFixtures(['passes.ts', 'strays.ts']);
  assert.match(output, /an error that belongs to no test: Error: .*"Error: nobody waits for this"/);
  assert.match(output, /Error: nobody waits for this\n {4}at .*strays\.ts/);
  assert.match(output, /FAILED: something is thrown beside it \(tools\/runner\/testing\/strays\.ts\)/);
  assert.match(output, /^1 passed, 1 failed, 0 skipped$/m);
  assert.equal(code, 1);
});

test('of files that share a process it is said which one does not end', async () => {
  const summary = /^2 passed, 1 failed, 0 skipped$/m;
  const { output, code } = await runIdling(['passes.ts', 'stays.ts'], summary);
  assert.match(output, /FAILED: tools\/runner\/testing\/stays\.ts does not end although its tests have/);
  assert.match(output, summary);
  assert.equal(code, 1);
});

test('what a file does before and after its tests is not for those of another of its process', async () => {
  const { output, code } = await runFixtures(['hooks.ts', 'unhooked.ts']);
  assert.match(output, /^2 passed, 0 failed, 0 skipped$/m);
  assert.doesNotMatch(output, /failed in one process/);
  assert.equal(code, 0);
});

test('files of one package share a process, unless one could change or notice the process of the others', () => {
  const texts = new Map([
    ['packages/a/src/one.test.ts', "test('one', () => {});"],
    ['packages/a/src/env.test.ts', 'process.env.HOME = directory;'],
    ['packages/a/src/assign.test.ts', 'Object.assign(process.env, { HOME: directory });'],
    ['packages/a/src/exit.test.ts', 'process.exitCode = 1;'],
    ['packages/b/src/two.test.ts', ''],
    ['packages/a/src/three.test.ts', "import '../process.ts'; process.platform; process.kill(child, 0);"],
    ['packages/a/src/hooks.test.ts', 'before(() => start());'],
    ['packages/a/src/reads.test.ts', "const env = { ...process.env }; if (process.env.HOME === '/') {}"],
    ['packages/a/src/time.test.ts', 'performance.now()'],
    ['packages/a/src/loop.test.ts', 'performance.eventLoopUtilization()'],
    ['packages/a/src/child.test.ts', "spawn('node', ['-e', 'process.exit(1)'], { env: process.env });"],
    [
      'packages/a/src/mocks.test.ts',
      "t.mock.timers.enable({ apis: ['setTimeout'] }); called.mock.callCount();",
    ],
    ['packages/a/src/mock.test.ts', "import { mock } from 'node:test';"],
    ['packages/a/src/gc.test.ts', "observer.observe({ entryTypes: ['gc'] });"],
    ['packages/a/src/workers.test.ts', "import { Worker } from 'node:worker_threads';"],
    ...Array.from({ length: 33 }, (_, index) => [`packages/c/src/${index}.test.ts`, ''] as const),
    ['tools/one.test.ts', ''],
    ['tools/soak/two.test.ts', ''],
  ]);
  const batches = batch([...texts.keys()], (path) => texts.get(path)!);
  assert.deepEqual(
    batches.map((paths) => paths.length),
    [7, 1, 1, 1, 1, 1, 1, 1, 1, 17, 16, 2],
  );
  assert.deepEqual(
    batches[0],
    ['one', 'three', 'hooks', 'reads', 'time', 'child', 'mocks'].map(
      (name) => `packages/a/src/${name}.test.ts`,
    ),
  );
});
