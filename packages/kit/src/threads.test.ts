import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { endThread, startThread } from './threads.ts';

test('a thread ends when it has loaded, after what it was told before', async () => {
  for (let round = 0; round < 5; round++) {
    const worker = startThread(new URL('./testing/thread.ts', import.meta.url));
    const said: unknown[] = [];
    worker.on('message', (message) => said.push(message));
    worker.postMessage('first');
    await endThread(worker);
    assert.deepEqual(said, [{ word: 'first' }]);
    // Once more does nothing.
    await endThread(worker);
  }
});

test('one that fails while it loads has ended, too', async () => {
  const worker = new Worker('throw new Error("broken")', { eval: true });
  const failed = once(worker, 'error');
  await endThread(worker);
  assert.match(String(await failed), /broken/);
});
