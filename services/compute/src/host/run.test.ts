import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { run } from './run.ts';

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
