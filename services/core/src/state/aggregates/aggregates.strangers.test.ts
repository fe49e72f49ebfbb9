import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const T0 = 1_700_000_000;
const { alice } = signers;
/** A field that a message can hold, and more of them than one answer may. */
const [FIELD_CHARS, FIELDS] = [1_000_000, 70];

describe('what strangers have made large', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
    const { body } = await core.send(alice, {
      type: 'AGGREGATE',
      content: { key: 'large', content: { first: 1 } },
      timestamp: T0,
    });
    // As many messages would have made it.
    await sql`
      insert into aggregate_entries (owner, key, field, value, "time", item_hash)
      select owner, key, 'field ' || n, to_jsonb(repeat('x', ${FIELD_CHARS}::int)), "time", ${body.item_hash} from
        aggregates, generate_series(1, ${FIELDS}::int) n`.execute(core.rooms.db);
    await core.send(alice, {
      type: 'AGGREGATE',
      content: { key: 'small', content: { first: 1 } },
      timestamp: T0,
    });
  });
  after(() => core[Symbol.asyncDispose]());

  test('an aggregate is not read whole where it is more than an answer may hold, and in part it is', async () => {
    for (const path of [
      `/aggregates/${alice.address}/large`,
      `/aggregates/${alice.address}.json`,
      `/aggregates?address=${alice.address}`,
      '/aggregates.json',
    ])
      assert.equal((await core.get(path)).body.code, 'LIST_TOO_COSTLY', path);
    const { body: part } = await core.get('/aggregates?content.fields=first');
    assert.deepEqual(
      part.aggregates.map((one: { content: unknown }) => one.content),
      [{ first: 1 }, { first: 1 }],
    );
    assert.equal((await core.get(`/aggregates/${alice.address}/small`)).status, 200);
  });

  test('a page of messages whose contents came as files is weighed, too', async () => {
    const { db } = core.rooms;
    for (let n = 0; n < 3; n++)
      await core.send(alice, { type: 'POST', content: { type: 'note', content: n }, timestamp: T0 + n });
    await sql`update messages set source_text = null, content = jsonb_build_object('type', 'note', 'content',
      repeat('x', ${30 * FIELD_CHARS}::int)) where type = 'POST'`.execute(db);
    const { body } = await core.get('/messages.json?msgTypes=POST&pagination=101');
    assert.equal(body.code, 'LIST_TOO_COSTLY');
  });
});
