import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { proxyVariables } from '@skerry/kit';
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

  test('a program is told nothing that this process was started with but where its files are', async (t) => {
    const { HOME = '' } = process.env;
    const secrets = {
      SKERRY_COMPUTE_TEST_KEY: 'a',
      DATABASE_URL: 'b',
      https_proxy: 'http://user:password@proxy',
    };
    Object.assign(process.env, secrets, { HOME: '/of-this-one' });
    t.after(() => {
      for (const name of Object.keys(secrets)) delete process.env[name];
      process.env.HOME = HOME;
    });
    const names = async (env?: Record<string, string>) =>
      (await run('env', [], env ? { env } : {})).split('\n').map((line) => line.split('=')[0]!);
    const told = await names();
    assert.ok(told.includes('PATH') && told.includes('HOME') && told.includes('LC_ALL'));
    for (const name of Object.keys(secrets)) assert.ok(!told.includes(name), name);
    assert.ok((await names(proxyVariables())).includes('https_proxy'));
  });

  test('lines of standard error are told whole', async () => {
    const lines: string[] = [];
    await run('sh', ['-c', 'printf "a\\nb" >&2; printf "c\\n" >&2'], {
      onErrorLine: (line) => lines.push(line),
    });
    assert.deepEqual(lines, ['a', 'bc']);
  });
});
