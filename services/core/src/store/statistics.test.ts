import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createTestCore, signers } from '../testing/core.ts';

test('ANALYZE reads no contents, texts and signatures of messages', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  for (const n of [1, 2, 3])
    await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: { n } } });
  await sql`analyze messages`.execute(db);
  const { rows } = await sql<{ attname: string }>`
    select attname from pg_stats where tablename = 'messages'`.execute(db);
  const names = rows.map(({ attname }) => attname);
  assert.ok(names.includes('sender'));
  assert.deepEqual(
    ['content', 'source_text', 'signature'].filter((name) => names.includes(name)),
    [],
  );
});
