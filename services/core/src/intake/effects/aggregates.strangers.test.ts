import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { LIMITS, verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';
import { PROCESSED } from '../accepted.ts';

const T0 = 1_700_000_000;
/** Of one element, and elements beside it that are as long as messages may be: it was looked for each field in each of them. */
const [FIELDS, LONG] = [LIMITS.aggregateFields, 10];
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
    return rows.map(({ is }) => is).toSorted();
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

  const fieldsOf = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, n]));
  const sign = (content: object) =>
    signMessage(
      { type: 'AGGREGATE', content, timestamp: T0, nonce: `${++sent}` } as MessageDraft,
      signers.alice,
    ).body;
  const countEntries = async (key: string) => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from aggregate_entries where key = ${key}`.execute(core.rooms.db);
    return rows[0]!.count;
  };

  test('an element that is too large is refused to a client, rejected where nodes pass it on, and taken back where it was in force', async () => {
    const { intake, pipeline } = core.rooms;
    const most = LIMITS.aggregateFields;
    assert.equal((await core.post('/messages', sign({ key: 'most', content: fieldsOf(most) }))).status, 200);
    assert.equal(await countEntries('most'), most);

    const large = sign({ key: 'large', content: fieldsOf(most + 1) });
    const { status, body } = await core.post('/messages', large);
    assert.deepEqual([status, body.code], [400, 'INVALID_CONTENT']);
    assert.match(body.error, /1001 members; one message may have 1000/);
    const accepted = acceptMessage(verifySubmission(Buffer.from(large), T0));
    await intake.peer.keep([{ accepted }]);
    const hash = accepted.message.itemHash;
    const statusOf = async () => (await core.get(`/messages/${hash}/status`)).body;
    assert.deepEqual(
      [(await statusOf()).status, (await statusOf()).reason.code, await countEntries('large')],
      ['rejected', 'INVALID_CONTENT', 0],
    );

    // As a release before this one had it.
    await pipeline.submit({ ...accepted, decide: () => PROCESSED });
    assert.deepEqual([(await statusOf()).status, await countEntries('large')], ['processed', most + 1]);
    await sql`insert into reconsider values (${hash})`.execute(core.rooms.db);
    pipeline.resume();
    await pipeline.idle();
    assert.deepEqual([(await statusOf()).status, await countEntries('large')], ['rejected', 0]);
  });

  test('what others may do for an owner is as long as it may be read for each of them', async () => {
    const security = (chars: number) =>
      sign({
        key: 'security',
        content: { authorizations: [{ address: 'x'.repeat(chars - '[{"address":""}]'.length) }] },
      });
    assert.equal((await core.post('/messages', security(LIMITS.authorizationsChars))).status, 200);
    const { status, body } = await core.post('/messages', security(LIMITS.authorizationsChars + 1));
    assert.deepEqual([status, body.code], [400, 'INVALID_CONTENT']);
    assert.match(body.error, /65537 characters as compact JSON, and may have 65536/);
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
