import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startProgress } from './progress.ts';

function createStream(isTTY: boolean) {
  const written: string[] = [];
  const write = (text: string) => written.push(text) > 0;
  return { stream: { isTTY, columns: 20, write }, written };
}

test('a line for each change where there is no terminal', () => {
  const { stream, written } = createStream(false);
  {
    using progress = startProgress(stream, 0);
    for (const text of ['starting', 'starting', 'running']) progress.show(text);
  }
  assert.deepEqual(written, ['starting\n', 'running\n']);
});

test('figures that count up are worth a line now and then where there is no terminal', (context) => {
  context.mock.timers.enable({ apis: ['Date', 'setInterval'] });
  const { stream, written } = createStream(false);
  using progress = startProgress(stream, 0);
  for (let mib = 900; mib <= 1100; mib++) {
    progress.show(mib < 1024 ? `${mib}.5 MiB of 2.0 GiB` : `${(mib / 1024).toFixed(1)} GiB of 2.0 GiB`);
    context.mock.timers.tick(100);
  }
  progress.show('checking');
  assert.deepEqual(written, [
    '900.5 MiB of 2.0 GiB\n',
    '949.5 MiB of 2.0 GiB\n',
    '999.5 MiB of 2.0 GiB\n',
    '1.0 GiB of 2.0 GiB\n',
    '1.1 GiB of 2.0 GiB\n',
    'checking\n',
  ]);
});

test('what goes on without a change gives signs of life where there is no terminal', (context) => {
  context.mock.timers.enable({ apis: ['Date', 'setInterval'] });
  const { stream, written } = createStream(false);
  using progress = startProgress(stream, 0);
  progress.show('starting');
  for (let second = 0; second < 65; second++) context.mock.timers.tick(1_000);
  assert.deepEqual(written, ['starting\n', 'starting (30 s)\n', 'starting (1 min)\n']);
});

test('one line that is written over on a terminal, never wider than it, and gone at the end', () => {
  const { stream, written } = createStream(true);
  {
    using progress = startProgress(stream, 0);
    progress.show('preparing: a long reason that does not fit');
  }
  assert.deepEqual(written, ['\r\u001b[Kpreparing: a long r', '\r\u001b[K']);
});

test('says nothing of what is soon over', (context) => {
  context.mock.timers.enable({ apis: ['Date', 'setInterval'] });
  const { stream, written } = createStream(true);
  {
    using progress = startProgress(stream);
    progress.show('quick');
  }
  assert.deepEqual(written, []);
});
