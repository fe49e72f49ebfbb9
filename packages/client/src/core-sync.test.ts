import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SyncStatusView } from '@skerry/protocol/api/core/sync';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';
import { CoreSync } from './core-sync.ts';

type Peer = SyncStatusView['peers'][number];
const { peers } = CORE_EXAMPLES.getSyncStatus!.answer as SyncStatusView;
const statusOf = (state: SyncStatusView['state'], ...states: Peer['state'][]) => ({
  ...{ state, behind: 0 },
  peers: states.map((one): Peer => ({ ...peers[0]!, state: one })),
});

test('a core node counts once it has what a peer has, or where it has none', () => {
  const may = (...status: Parameters<typeof statusOf>) =>
    new CoreSync('http://core').judge(statusOf(...status)) === null;
  assert.ok(may('alone'));
  // It reads what it has.
  assert.ok(may('syncing', 'self'));
  assert.ok(may('synced', 'failing', 'synced'));
  // Its last session is not long ago.
  assert.ok(may('synced', 'failing'));
  // A peer whose clock is ahead has messages that this one takes later.
  assert.ok(may('syncing', 'synced'));
  assert.ok(!may('syncing', 'new'));
  assert.ok(!may('syncing', 'syncing', 'failing'));
  assert.ok(!may('apart', 'failing'));
  // A peer that brings nothing of what it says to have is as good as none that answers.
  assert.ok(may('synced', 'stalled', 'synced'));
  assert.ok(!may('apart', 'stalled'));
  assert.ok(!may('syncing', 'stalled', 'syncing'));
});

test('a node that is cut off counts: at once where it was in step before, otherwise once all peers had their time', () => {
  let nowMs = 0;
  const sync = new CoreSync('http://core', {}, () => nowMs);
  const apart = statusOf('apart', 'failing');
  assert.match(sync.judge(apart)!, /has not reached any of its peers/);
  nowMs = 119_999;
  assert.notEqual(sync.judge(apart), null);
  nowMs++;
  assert.equal(sync.judge(apart), null);
  assert.equal(sync.judge(statusOf('apart', 'stalled')), null);
  // It meets one again, whose decisions it has not got yet.
  assert.match(
    sync.judge({ ...statusOf('apart', 'syncing'), behind: 3 })!,
    /still fetching what its peers have: at least 3 messages/,
  );
  assert.equal(sync.judge(statusOf('synced', 'synced')), null);
  nowMs += 1_000;
  assert.equal(sync.judge(apart), null);
  assert.notEqual(sync.judge(statusOf('syncing', 'new')), null);
});
