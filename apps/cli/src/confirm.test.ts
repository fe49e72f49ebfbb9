import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { confirm } from './confirm.ts';
import { describeFailure } from './failure.ts';

test('a name that somebody else gave steers no terminal in the question whether it is meant', async () => {
  const terminal = () => Object.assign(new PassThrough(), { isTTY: true });
  const [stdin, stderr] = [terminal(), terminal()];
  let shown = '';
  stderr.on('data', (text: Buffer) => {
    shown += text;
  });
  const asked = confirm(
    { stdin, output: { stderr } } as never,
    'Delete web\u001b[2K\u009b1GDelete test and its disk?',
    { unattended: 'use --yes', refused: 'nothing was deleted' },
  );
  stdin.end('n\n');
  await assert.rejects(asked, { code: 'CONFIRMATION_REQUIRED', message: 'nothing was deleted' });
  assert.match(shown, /Delete web.*Delete test and its disk\? \[y\/N\] /);
  for (const steering of ['\u001b[2K', '\u009b']) assert.ok(!shown.includes(steering));
});

test('neither Ctrl-C nor Ctrl-D nor the end of the input is an answer, and each is told as what it is', async () => {
  for (const [typed, code, exitCode] of [
    ['\u0003', 'INTERRUPTED', 130],
    ['\u0004', 'CONFIRMATION_REQUIRED', 1],
    ['', 'CONFIRMATION_REQUIRED', 1],
  ] as const) {
    const terminal = () => Object.assign(new PassThrough(), { isTTY: true });
    const [stdin, stderr] = [terminal(), terminal()];
    const asked = confirm({ stdin, output: { stderr } } as never, 'Delete it?', {
      ...{ unattended: 'use --yes', refused: 'nothing was deleted' },
    });
    stderr.once('data', () => (typed === '' ? stdin.end() : stdin.write(typed)));
    const error = await asked.then(undefined, (reason: unknown) => reason);
    const failure = describeFailure(error);
    assert.deepEqual([failure.body.code, failure.exitCode], [code, exitCode]);
    assert.match(failure.body.error, /nothing was changed$/);
  }
});
