import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastWordsOf } from './heard.ts';
import { playProgram } from './play.ts';

const play = (code: string) => playProgram('a scenario', process.execPath, ['-e', code]);

test('a scenario that fails is told with the step that it was in and its error, however much is printed behind them', async () => {
  await play('console.log("[0.1 s] done")');
  const noise = 'for (let n = 0; n < 100; n++) console.log("noise", n);';
  const failing = `console.log("[0.1 s] the first"); console.log("[0.2 s] the second"); console.log(new RangeError("1.7").stack); ${noise} process.exitCode = 7;`;
  await assert.rejects(play(failing), ({ message }: Error) => {
    assert.match(
      message,
      /^a scenario ended with 7; its last words:\n\[0\.2 s\] the second\nRangeError: 1\.7\n/,
    );
    assert.match(message, /\nnoise 99$/);
    // As many as a run tells again of one error (tools/runner/closing.ts), with one of its own.
    assert.ok(message.split('\n').length <= 19, message);
    return true;
  });
});

test('one that is killed, cannot be started, or leaves somebody behind who has its output, is told of', async () => {
  await assert.rejects(play('process.kill(process.pid, "SIGKILL")'), /^Error: a scenario ended with SIGKILL/);
  await assert.rejects(play('process.exit(1)'), /ended with 1; its last words:\n\(none\)$/);
  await assert.rejects(playProgram('nothing', '/nowhere/at/all', []), { code: 'ENOENT' });
  const left = `require('child_process').spawn('sleep', ['5'], { stdio: 'inherit', detached: true }).unref(); console.log('words'); process.exit(1);`;
  await assert.rejects(play(left), /ended with 1; its last words:\nwords$/);
});

test('last words are few, and their lines short', () => {
  assert.equal(lastWordsOf(''), '');
  assert.equal(lastWordsOf('one\n\ntwo\n'), 'one\ntwo');
  assert.equal(lastWordsOf(`${'x'.repeat(9_999)}\n`).length, 401);
  const far = ['[1.0 s] a step', 'Error: no', ...Array.from({ length: 20 }, (_, n) => `line ${n}`)];
  const told = lastWordsOf(far.join('\n')).split('\n');
  assert.deepEqual(
    [told.slice(0, 4), told.at(-1)],
    [['[1.0 s] a step', 'Error: no', '[…]', 'line 6'], 'line 19'],
  );
});
