import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { textFrame } from './frame.ts';
import { StatusFeed } from './status-feed.ts';

test('the status is told again when it has changed, to those who do not have it yet', async (context) => {
  // The feed's own timer keeps no process alive, and nothing else may run in this one.
  const alive = setInterval(() => {}, 60_000);
  context.after(() => clearInterval(alive));
  let looks = 0;
  const states = [{ n: 1 }, { n: 1 }, { n: 2 }];
  const changed = Promise.withResolvers<void>();
  const written: Buffer[] = [];
  let close = () => {};
  const feed = new StatusFeed(
    async () => states[Math.min(looks++, states.length - 1)]!,
    createLogger('test', 'silent'),
    1,
  );
  feed.add(
    {
      unread: 0,
      write: (frame) => {
        if (written.push(frame) === 2) changed.resolve();
      },
      letGo: () => assert.fail('it reads'),
      onClose: (listener) => {
        close = listener;
      },
    },
    await feed.current(),
  );
  await changed.promise;
  close();
  assert.deepEqual(written, [textFrame('{"n":1}'), textFrame('{"n":2}')]);
});
