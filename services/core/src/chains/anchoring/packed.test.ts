import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createTestCore, signers } from '../../testing/core.ts';
import { archivedTextOf } from './archive.ts';
import { listOpen, listUnconfirmed, loadPackedSeq, notePacked, noteSent } from './packed.ts';

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

test('what is packed is read up to a number of bytes, and no content that is a file is', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(1_000_000));
  const hashes: string[] = [];
  for (const content of texts) {
    const draft = { type: 'POST', content: { type: 'note', content } };
    hashes.push((await core.send(signers.alice, draft)).body.item_hash);
  }
  const list = async (events: number, bytes: number) =>
    (await listUnconfirmed(db, 0, Number.MAX_SAFE_INTEGER, { events, bytes })).map((row) => row.item_hash);
  assert.deepEqual(await list(500, 500_000), hashes.slice(0, 1), 'one at least');
  assert.deepEqual(await list(500, 1_500_000), hashes.slice(0, 2));
  assert.deepEqual(await list(500, 5_000_000), hashes);
  assert.deepEqual(await list(2, 5_000_000), hashes.slice(0, 2));
  // As a message whose content is a file is kept.
  await sql`update messages set form = 'network', source_text = null`.execute(db);
  const [row, ...others] = await listUnconfirmed(db, 0, Number.MAX_SAFE_INTEGER, {
    events: 500,
    bytes: 1_000_000,
  });
  assert.equal(others.length, 2, 'it takes no room in an archive');
  assert.ok(row && row.item_hash !== null && row.content === null);
  assert.equal(JSON.parse(archivedTextOf(row)).item_type, 'storage');
});
