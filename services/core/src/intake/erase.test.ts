import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { createTestCore, signers } from '../testing/core.ts';
import { isAnyWaiting } from '../testing/waiting.ts';
import { ERASE_AFTER_MS, eraseForgotten } from './erase.ts';

const { alice } = signers;

test('a text is not erased that comes back into force at the same time', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const { body } = await core.send(alice, { type: 'POST', content: { type: 'note', content: 'kept' } });
  const { item_hash: hash } = body;
  assert.equal((await core.send(alice, { type: 'FORGET', content: { hashes: [hash] } })).status, 200);
  const erasing = await db.transaction().execute(async (trx) => {
    await trx
      .updateTable('messages')
      .set({ status: 'processed' })
      .where('item_hash', '=', hash)
      .where('status', '=', 'forgotten')
      .executeTakeFirstOrThrow();
    let isEnded = false;
    const ended = eraseForgotten(db, Date.now() + 2 * ERASE_AFTER_MS).then(() => {
      isEnded = true;
    });
    await until('the erasing has met the row', async () => isEnded || (await isAnyWaiting(trx)));
    return { ended };
  });
  await erasing.ended;
  const row = await db
    .selectFrom('messages')
    .select(['status', 'erased', 'source_text'])
    .where('item_hash', '=', hash)
    .executeTakeFirstOrThrow();
  assert.deepEqual([row.status, row.erased, row.source_text !== null], ['processed', null, true]);
});
