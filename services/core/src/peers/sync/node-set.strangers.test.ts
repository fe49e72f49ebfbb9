import assert from 'node:assert/strict';
import { test } from 'node:test';
import { syncKeyOf } from '@skerry/protocol';
import { createTestCore, signers } from '../../testing/core.ts';
import { NodeSet } from './node-set.ts';

const moveOf = (n: number) => {
  const itemHash = n.toString(16).padStart(64, '0');
  const said = { sender: '', channel: null, time: n, sentTime: null, tags: [], notedMs: null };
  const to = syncKeyOf({ form: 'envelope', itemHash, ...said });
  return { itemHash, from: null, to };
};
const movesOf = (count: number) => Array.from({ length: count }, (_, n) => moveOf(n));

test('F1: a set that is not read yet keeps no more than a bound, and is read again after a failure', async () => {
  await using core = await createTestCore();
  const sent = await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: 1 } });
  assert.equal(sent.status, 200);
  const set = new NodeSet({ earlyMovesMax: 10 });
  set.follow(movesOf(1_000));
  const flooded = set.load(core.rooms.db);
  set.follow(movesOf(11));
  await assert.rejects(flooded, { code: 'OVERLOADED' });
  assert.deepEqual([set.isReady, set.size], [false, 1]);

  const loaded = set.load(core.rooms.db);
  set.follow(movesOf(10));
  await loaded;
  assert.deepEqual([set.isReady, set.size], [true, 11]);
  set.follow([moveOf(11)]);
  assert.equal(set.index.size, 12);
});
