import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const T0 = 1_700_000_000;
/** Of one element, and elements beside it that are as long as messages may be: it was looked for each field in each of them. */
const [FIELDS, LONG] = [6_000, 10];
const LONG_BYTES = 450_000;

describe('aggregates of strangers', () => {
  let core: TestCore;
  let sent = 0;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  async function put(type: string, content: object): Promise<string> {
    const draft = { type, content, timestamp: T0 + ++sent, nonce: `${sent}` } as MessageDraft;
    const { body, itemHash } = signMessage(draft, signers.alice);
    const answer = await core.post('/messages', body);
    assert.equal(answer.status, 200, answer.body.error);
    return itemHash;
  }
  async function listEntries(table: string): Promise<unknown[]> {
    const { rows } = await sql<{ is: string }>`
      select concat_ws(' ', field, value, item_hash) as is from ${sql.table(table)} where key = 'k' order by field, item_hash`.execute(
      core.rooms.db,
    );
    return rows.map(({ is }) => is);
  }

  test('a FORGET of many fields beside long elements takes effect within a statement’s time', async () => {
    const fields = Object.fromEntries(Array.from({ length: FIELDS }, (_, n) => [`f${n}`, 1]));
    const wide = await put('AGGREGATE', { key: 'wide', content: fields });
    for (let n = 0; n < LONG; n++)
      await put('AGGREGATE', { key: 'wide', content: { long: randomBytes(LONG_BYTES).toString('hex') } });
    await put('FORGET', { hashes: [wide] });
    await core.rooms.pipeline.idle();
    assert.equal((await core.get(`/messages/${wide}/status`)).body.status, 'forgotten');
    const { body } = await core.get(`/aggregates/${signers.alice.address}/wide`);
    assert.deepEqual(Object.keys(body.content), ['long']);
  });

  test('what lies beneath a field is what is left of earlier elements, whichever is forgotten', async () => {
    const write = (at: number) => put('AGGREGATE', { key: 'k', content: { one: at, [`own${at}`]: at } });
    const [first, second, third] = [await write(1), await write(2), await write(3)];
    assert.deepEqual(await listEntries('aggregate_covered'), [`one 1 ${first}`, `one 2 ${second}`].sort());
    await put('FORGET', { hashes: [second] });
    await core.rooms.pipeline.idle();
    assert.deepEqual(await listEntries('aggregate_covered'), [`one 1 ${first}`]);
    await put('FORGET', { hashes: [third] });
    await core.rooms.pipeline.idle();
    assert.deepEqual(await listEntries('aggregate_covered'), []);
    assert.deepEqual(await listEntries('aggregate_entries'), [`one 1 ${first}`, `own1 1 ${first}`]);
  });
});
