import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestCore } from '../../testing/core.ts';
import { listOpen, loadPackedSeq, notePacked, noteSent } from './packed.ts';

const NETWORK = 'test';

// 1 CPU second.
test('of two processes that pack the same part of the log one makes an archive, and of two that send it one does', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const part = { after: 0, seq: 7 };
  const pack = (cid: string, of = part) => notePacked(db, NETWORK, of, { cid, messages: 3 }, 1);
  const made = await Promise.all([pack('one'), pack('two')]);
  assert.deepEqual(made.toSorted(), [false, true]);
  assert.equal(await loadPackedSeq(db, NETWORK), 7);
  const [open, ...more] = await listOpen(db, NETWORK);
  assert.deepEqual(more, []);
  assert.equal(await pack('later', { after: 7, seq: 9 }), true);

  const send = (hash: string) => noteSent(db, open!, { hash, nonce: 0, maxFee: 1n }, 2);
  assert.deepEqual((await Promise.all([send('0x1'), send('0x2')])).toSorted(), [false, true]);
  const [sent] = await listOpen(db, NETWORK);
  assert.equal(sent!.sends, 1);
  assert.equal(await noteSent(db, sent!, { hash: '0x3', nonce: 0, maxFee: 2n }, 3), true, 'again, later');
});
