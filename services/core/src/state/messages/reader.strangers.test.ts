import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, signers } from '../../testing/core.ts';
import { LIGHT_BYTES } from '../lists/weight.ts';
import { createMessageReader } from './reader.ts';
import { addProvable } from './shared.ts';
import { viewOf } from './view.ts';

test('a light message holds nothing before it is sent, since its answer has several times its text; a heavy one does', async () => {
  await using core = await createTestCore();
  const { db, reads } = core.rooms;
  const content = { type: 'note', content: '"'.repeat(100_000) };
  const { item_hash: hash } = (await core.send(signers.alice, { type: 'POST', content })).body;
  // What a standby has to be fresh for is read by itself.
  const read = createMessageReader({ ...reads, after: () => 0 });
  const held: number[] = [];
  const hold = (bytes: number) => void held.push(bytes);
  const { row } = (await read(hash, hold))!;
  assert.deepEqual(
    held.map((bytes) => bytes > LIGHT_BYTES),
    [],
  );
  const [view] = await addProvable(db, [viewOf(row)], true, LIMITS.jsonBodyBytes);
  const times = JSON.stringify(view).length / row.source_text!.length;
  assert.ok(times > 4, `${times} times its text`);

  await sql`update messages set source_text = null, content = jsonb_build_object('type', 'note', 'content',
    repeat('x', ${LIGHT_BYTES}::int))`.execute(db);
  await read(hash, hold);
  assert.deepEqual(
    held.map((bytes) => bytes > LIGHT_BYTES),
    [true],
  );
});
