import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestCore, signers } from '../../testing/core.ts';
import { createEventLog } from './log.ts';

// 1 CPU second.
test('who waits is woken by a look where another process has written, and by none where nothing was', async () => {
  await using core = await createTestCore();
  const other = createEventLog(core.rooms.db);
  const stop = new AbortController();
  const wait = () => other.waitForMore(stop.signal);
  await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: {} } });
  const { wakes } = other;
  await other.look();
  assert.equal(other.wakes, wakes, 'nobody waits');
  const first = wait();
  await other.look();
  await first;
  assert.equal(other.wakes, wakes + 1);
  const second = wait();
  await other.look();
  assert.equal(other.wakes, wakes + 1, 'nothing was written');
  await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: { n: 2 } } });
  await other.look();
  await second;
  assert.equal(other.wakes, wakes + 2);
  stop.abort();
});
