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

test('one line that is written over on a terminal, never wider than it, and gone at the end', () => {
  const { stream, written } = createStream(true);
  {
    using progress = startProgress(stream, 0);
    progress.show('preparing: a long reason that does not fit');
  }
  assert.deepEqual(written, ['\r\u001b[Kpreparing: a long r', '\r\u001b[K']);
});

test('says nothing of what is soon over', () => {
  const { stream, written } = createStream(true);
  {
    using progress = startProgress(stream);
    progress.show('quick');
  }
  assert.deepEqual(written, []);
});
