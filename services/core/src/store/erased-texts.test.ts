import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { sql } from 'kysely';
import { ERASE_AFTER_MS, eraseForgotten } from '../intake/erase.ts';
import { createTestCore, MIGRATIONS, signers } from '../testing/core.ts';
import { MissedFiles } from './files/missed.ts';

const { alice } = signers;
const T0 = 1_700_000_000;

test('texts that an earlier release erased are wanted after the migration where no FORGET in force names them', async () => {
  await using core = await createTestCore();
  const { db, pipeline } = core.rooms;
  const draftOf = (content: string) => ({ type: 'POST', content: { type: 'note', content } }) as const;
  const put = async ({ body, itemHash }: { readonly body: string; readonly itemHash: string }) => {
    assert.equal((await core.post('/messages', body)).status, 200);
    return itemHash;
  };
  const envelope = (content: string) => put(signMessage({ ...draftOf(content), timestamp: T0 }, alice));
  const network = (content: string) => put(buildNetworkMessage({ ...draftOf(content), time: T0 }, alice));
  const kept = await envelope('kept');
  const forgotten = [await envelope('one'), await network('other')];
  const [hidden, wanted, refused] = [
    await envelope('hidden'),
    await envelope('wanted'),
    await envelope('refused'),
  ];
  const untold = await network('refused');
  const file = await network('may have been a file');
  const forget = async (hashes: readonly string[]) => {
    assert.equal((await core.send(alice, { type: 'FORGET', content: { hashes } })).status, 200);
    await pipeline.idle();
  };
  await forget([...forgotten, wanted, file]);
  await eraseForgotten(db, Date.now() + ERASE_AFTER_MS);
  await forget([hidden]);
  // As the release before kept them.
  await sql`delete from forgets where target in (${wanted}, ${file})`.execute(db);
  await sql`update messages set status = 'rejected', reason = '{"code": "NOT_PERMITTED", "message": ""}', content = null, source_text = null
    where item_hash in (${refused}, ${untold})`.execute(db);
  await sql`alter table messages drop column erased`.execute(db);

  await sql`delete from dependencies`.execute(db);
  for (const name of ['046-erased-texts-that-are-wanted.sql', '047-erased-files-that-are-wanted.sql'])
    await sql.raw(await readFile(join(MIGRATIONS, name), 'utf8')).execute(db);
  const rows = await db
    .selectFrom('messages')
    .select(['item_hash', 'erased'])
    .where('type', '=', 'POST')
    .execute();
  const erased = new Map(rows.map((row) => [row.item_hash, row.erased]));
  for (const hash of forgotten) assert.equal(erased.get(hash), 'forgotten');
  for (const hash of [wanted, file, refused]) assert.equal(erased.get(hash), 'wanted');
  for (const hash of [kept, hidden, untold]) assert.equal(erased.get(hash), null);
  const missed = new MissedFiles({ db, namedBy: 'hash', now: Date.now });
  await missed.round();
  assert.deepEqual(missed.names, [file]);
});
