import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { writeFileAtomically } from './atomic-file.ts';
import { acquireFileLock } from './file-lock.ts';
import { run } from './run.ts';

const never = new AbortController().signal;
const isError = (code: string, words: RegExp) => (error: unknown) =>
  error instanceof AppError && error.code === code && words.test(error.message);

describe('run', () => {
  test('gives what the program wrote, and hands it its input', async () => {
    assert.equal(await run('cat', [], { input: 'hello' }), 'hello');
  });

  test('a failure carries the end of what the program complained', async () => {
    await assert.rejects(
      run('sh', ['-c', 'echo first >&2; echo last words >&2; exit 3']),
      isError('INTERNAL', /code 3: first\nlast words$/),
    );
  });

  test('a missing program and one that does not end are told apart', async () => {
    await assert.rejects(run('skerry-no-such-program', []), isError('HOST_NOT_READY', /not installed/));
    await assert.rejects(run('sleep', ['60'], { timeoutMs: 50 }), isError('TIMED_OUT', /50 ms/));
    const ending = new AbortController();
    const running = run('sleep', ['60'], { signal: ending.signal });
    ending.abort(new Error('stopped'));
    await assert.rejects(running, /stopped/);
  });

  test('lines of standard error are told whole', async () => {
    const lines: string[] = [];
    await run('sh', ['-c', 'printf "a\\nb" >&2; printf "c\\n" >&2'], {
      onErrorLine: (line) => lines.push(line),
    });
    assert.deepEqual(lines, ['a', 'bc']);
  });
});

describe('files and locks', () => {
  const withDirectory = async (body: (directory: string) => Promise<void>) => {
    const directory = await mkdtemp(join(tmpdir(), 'skerry-host-'));
    try {
      await body(directory);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  };

  test('an atomic write leaves one file', () =>
    withDirectory(async (directory) => {
      const path = join(directory, 'a');
      await writeFileAtomically(path, 'one');
      await writeFileAtomically(path, 'two', 0o600);
      assert.equal(await readFile(path, 'utf8'), 'two');
      assert.deepEqual(await readdir(directory), ['a']);
    }));

  test('a lock is waited for, and is free again when its holder is killed', () =>
    withDirectory(async (directory) => {
      const path = join(directory, 'lock');
      const code = `const { acquireFileLock } = await import(${JSON.stringify(join(import.meta.dirname, 'file-lock.ts'))});
        await acquireFileLock(${JSON.stringify(path)}, new AbortController().signal);
        console.log('held'); setInterval(() => {}, 1000);`;
      const holder = spawn(process.execPath, ['--input-type=module', '-e', code], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(holder.stdout, 'data');
      let hasWaited = false;
      const waiting = acquireFileLock(path, never, () => {
        hasWaited = true;
        holder.kill('SIGKILL');
      });
      const lock = await waiting;
      assert.ok(hasWaited);
      await lock[Symbol.asyncDispose]();
      await using again = await acquireFileLock(path, never, () => assert.fail('nobody holds it'));
      assert.ok(again);
    }));
});
