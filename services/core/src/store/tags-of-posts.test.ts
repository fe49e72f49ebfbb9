import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import { createTestCore, MIGRATIONS, signers } from '../testing/core.ts';
import type { Schema } from './schema.ts';

const T0 = 1_700_000_000;
const post = (content: unknown, at: number) =>
  signMessage({ type: 'POST', channel: 'c', timestamp: T0 + at, content } as MessageDraft, signers.alice);

test('posts that an earlier release listed without their inner tags are listed by them after the migration', async () => {
  await using database = await createTestDatabase<Schema>({
    migrations: MIGRATIONS,
    log: createLogger('test', 'silent'),
  });
  const db = database.kysely;
  const both = post({ type: 'note', tags: ['outer'], content: { tags: ['inner', 5] } }, 1);
  const amend = post({ type: 'amend', ref: both.itemHash, content: {} }, 2);
  const look = async () => {
    await using core = await createTestCore({ database });
    await core.rooms.pipeline.idle();
    const totalOf = async (path: string) => (await core.get(path)).body;
    const totals = await sql<object>`select a, b, total from totals where total <> 0 order by a, b`.execute(
      db,
    );
    return {
      totals: totals.rows,
      inner: (await totalOf('/messages?tags=inner')).pagination.total,
      outer: (await totalOf('/messages?tags=outer')).pagination.total,
      posts: (await totalOf('/posts.json?tags=inner')).pagination_total,
      events: (await totalOf('/events?limit=100')).events.length,
    };
  };
  {
    await using core = await createTestCore({ database, now: () => (T0 + 10) * 1000 });
    for (const { body } of [both, amend]) assert.equal((await core.post('/messages', body)).status, 200);
  }
  const expected = await look();
  assert.deepEqual([expected.inner, expected.outer, expected.posts, expected.events], [1, 1, 1, 2]);

  // As the release before kept them.
  await sql`update messages set tags = '{outer}' where item_hash = ${both.itemHash}`.execute(db);
  await sql`update amended_posts set tags = '{outer}'`.execute(db);
  await sql`delete from message_tags where tag = 'inner'`.execute(db);
  await sql`delete from totals where a = 'g:inner' or b = 'g:inner'`.execute(db);
  assert.deepEqual((await look()).inner, 0);
  await database.pool.query(await readFile(join(MIGRATIONS, '013-tags-of-posts.sql'), 'utf8'));
  assert.deepEqual(await look(), expected);
});
