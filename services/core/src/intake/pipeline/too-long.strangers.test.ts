import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';

const TIMESTAMP = 1_700_000_000;

/** What PostgreSQL says when a statement's time is over, here at once, of the fields of one name. */
const REFUSE = sql`
  create function take_long() returns trigger language plpgsql as $$
  begin
    raise exception 'canceling statement due to statement timeout' using errcode = 'query_canceled';
  end $$`;

describe('a message that takes the database longer than a statement may', () => {
  let core: TestCore;
  let nowMs = Date.now();
  let sent = 0;
  before(async () => {
    core = await createTestCore({ now: () => nowMs });
    await REFUSE.execute(core.rooms.db);
  });
  after(() => core[Symbol.asyncDispose]());

  const take = (when: 'insert' | 'delete', row: 'new' | 'old') =>
    sql`create or replace trigger takes_long before ${sql.raw(when)} on aggregate_entries for each row
      when (${sql.raw(row)}.field = 'long') execute function take_long()`.execute(core.rooms.db);
  const sign = (type: string, content: object) => {
    const draft = { type, content, timestamp: TIMESTAMP, nonce: `${sent++}` } as MessageDraft;
    return acceptMessage(verifySubmission(Buffer.from(signMessage(draft, signers.alice).body), TIMESTAMP));
  };
  const element = (field: string) => sign('AGGREGATE', { key: 'k', content: { [field]: sent } });
  const statusOf = async (hash: string) => (await core.get(`/messages/${hash}/status`)).body.status;

  test('does not take down those of the same batch', async () => {
    await take('insert', 'new');
    const names = Array.from({ length: 20 }, (_, n) => (n === 7 ? 'long' : `short${n}`));
    const ends = await Promise.allSettled(names.map((name) => core.rooms.pipeline.submit(element(name))));
    const failed = ends.flatMap((end, n) => (end.status === 'rejected' ? [[n, end.reason.code]] : []));
    assert.deepEqual(failed, [[7, 'DATABASE_UNAVAILABLE']]);
  });

  test('does not hold up the line of those that are decided again, and is tried again', async () => {
    await sql`drop trigger takes_long on aggregate_entries`.execute(core.rooms.db);
    const { pipeline } = core.rooms;
    const elements = ['long', ...Array.from({ length: 5 }, (_, n) => `other${n}`)].map(element);
    for (const one of elements) await pipeline.submit(one);
    await take('delete', 'old');
    const hashes = elements.map(({ message }) => message.itemHash);
    await pipeline.submit(sign('FORGET', { hashes }));
    await pipeline.idle();
    const [long, ...others] = await Promise.all(hashes.map(statusOf));
    assert.equal(long, 'processed');
    assert.deepEqual(new Set(others), new Set(['forgotten']));
    await sql`drop trigger takes_long on aggregate_entries`.execute(core.rooms.db);
    nowMs += 60_000;
    pipeline.resume();
    await pipeline.idle();
    assert.equal(await statusOf(hashes[0]!), 'forgotten');
  });
});
