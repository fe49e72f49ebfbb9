import assert from 'node:assert/strict';
import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { hear } from '@skerry/kit/testing/heard';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { createTestDatabase } from '../packages/database/src/testing/database.ts';
import { compareShape, findUnmarked, readExamples } from './examples.ts';
import { ROOT } from './source.ts';

/** Pages are run: each `sh example` block by a shell, in order, against a core node of its own. */

const PAGES = ['README.md', ...globSync('docs/*.md', { cwd: ROOT }).sort()];
const CORE = join(ROOT, 'services/core/src/testing/process.ts');
/** Between the outputs of two blocks. */
const MARK = '\x1e';
const PAGE_TIMEOUT_MS = 200_000;

const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');

async function startCore(home: string) {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await createTestDatabase({ log: createLogger('test', 'silent') }));
  const child = fork(CORE, [], {
    env: {
      ...process.env,
      SKERRY_HOME: home,
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_LOG_LEVEL: 'error',
      DATABASE_URL: database.url,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  stack.defer(() => endProcess(child, 'SIGTERM'));
  const { urls } = await awaitReady<{ urls: string[] }>(child, 'the core node', hear(child));
  const started = stack.move();
  return { url: urls[0]!, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

async function runPage(scripts: readonly string[], home: string, coreUrl: string) {
  const script = ['set -euo pipefail', ...scripts.flatMap((one) => [one, `printf '${MARK}'`])].join('\n');
  const shell = spawn('bash', ['-c', script], {
    cwd: home,
    env: {
      ...process.env,
      PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
      SKERRY_HOME: home,
      SKERRY_CORE_URL: coreUrl,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PAGE_TIMEOUT_MS,
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, 'exit'),
  ]);
  return { outputs: stdout.split(MARK), stderr, code: code as number | null };
}

describe('the examples of our pages', () => {
  for (const page of PAGES) {
    const examples = readExamples(read(page));
    if (examples.length === 0) continue;
    test(`${page}: ${examples.length} examples do what they say`, async () => {
      for (const program of ['bash', 'curl'])
        assert.equal(
          spawnSync(program, ['--version']).status,
          0,
          `the examples need ${program}; install it (Debian: apt-get install ${program})`,
        );
      const home = await mkdtemp(join(tmpdir(), 'skerry-examples-'));
      try {
        await using core = await startCore(home);
        const { outputs, stderr, code } = await runPage(
          examples.map((one) => one.script),
          home,
          core.url,
        );
        const failed = examples[outputs.length - 1];
        assert.equal(code, 0, `${page}:${failed?.line} failed: ${outputs.at(-1)}${stderr}`);
        for (const [index, { line, output }] of examples.entries()) {
          if (output === undefined) continue;
          const problems = compareShape(JSON.parse(output), JSON.parse(outputs[index]!));
          assert.deepEqual(problems, [], `${page}:${line} printed ${outputs[index]}`);
        }
      } finally {
        await rm(home, { recursive: true, force: true });
      }
    });
  }

  test('every example that asks the API is marked, so that it is run', () => {
    const unmarked = PAGES.flatMap((page) => findUnmarked(read(page)).map((line) => `${page}:${line}`));
    assert.deepEqual(unmarked, []);
    assert.ok(PAGES.flatMap((page) => readExamples(read(page))).length >= 7);
  });
});

test('blocks, marks and shapes are read as they are meant', () => {
  const page =
    '```sh example\na\n```\n\n```json output\n{}\n```\n```sh\ncurl $X/api/v0/version\n```\n```sh example\nb\n```\n';
  assert.deepEqual(readExamples(page), [
    { line: 1, script: 'a', output: '{}' },
    { line: 11, script: 'b', output: undefined },
  ]);
  assert.deepEqual(findUnmarked(page), [8]);
  assert.deepEqual(compareShape({ a: [1], b: null }, { a: [2, 3], b: null, c: 1 }), []);
  assert.deepEqual(compareShape({ a: [1], b: '' }, { a: [], b: 1 }), [
    'output.a[0] is shown as number, printed as undefined',
    'output.b is shown as string, printed as number',
  ]);
});
