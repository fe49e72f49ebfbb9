import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { AppError } from '@skerry/protocol';
import { createTestCore } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

test('sessions do not begin as often as others are met, and none begins ahead of the rest of a peer that fails', async (t) => {
  await using stack = new AsyncDisposableStack();
  const source = stack.use(await createTestCore());
  const greeted = { well: 0, failing: 0 };
  const link = linkTo('well', () => source);
  const well: PeerLink = {
    ...link,
    greet: (ended) => {
      greeted.well++;
      return link.greet(ended);
    },
  };
  const failing: PeerLink = {
    ...link,
    name: 'failing',
    greet: async () => {
      greeted.failing++;
      throw new AppError('UPSTREAM_UNAVAILABLE', 'it is away');
    },
  };
  const core = stack.use(await createTestCore({ peers: [well, failing] }));
  const { syncer } = core.rooms.sync;
  const stop = new AbortController();
  const running = syncer.run(stop.signal);
  t.after(() => stop.abort());
  await until('the first session', () => syncer.view().peers[0]!.state === 'synced');
  for (let n = 0; n < 50; n++) {
    syncer.nudge();
    // As long as a session takes.
    for (let asked = 0; asked < 5; asked++) await core.get('/messages');
  }
  // Rests that end in the meantime, on a machine that is slow, are no more than a few.
  assert.ok(greeted.well < 15 && greeted.failing < 15, JSON.stringify(greeted));
  stop.abort();
  await running;
});
