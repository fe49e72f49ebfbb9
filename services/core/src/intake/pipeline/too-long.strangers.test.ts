import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, signMessage } from '@skerry/client';
import { verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';

const TIMESTAMP = 1_700_000_000;

/** Of the lock of all writers, while one message of a batch is found. */
const SEARCH_MAX_MS = 120_000;

/**
 * What PostgreSQL says when a statement's time is over, here at once, of the fields of one name. The sum of these times is in a
 * sequence, which no rollback takes back.
 */
const REFUSE = sql`
  create sequence spent_ms minvalue 0 start 0;
  create function take_long() returns trigger language plpgsql as $$
  begin
    perform setval('spent_ms', (select last_value from spent_ms)
      + (extract(epoch from current_setting('statement_timeout')::interval) * 1000)::bigint);
    raise exception 'canceling statement due to statement timeout' using errcode = 'query_canceled';
  end $$`;

describe('a message that takes the database longer than a statement may', () => {
  let core: TestCore;
  let nowMs = Date.now();
  let sent = 0;
  before(async () => {
    core = await createTestCore({ now: () => nowMs, uptime: () => nowMs });
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
  /** How long a message that never ends would have taken since it was asked last, in milliseconds. */
  const spentMs = async () => {
    const { rows } = await sql<{ ms: number }>`
      select last_value as ms, setval('spent_ms', 0) from spent_ms`.execute(core.rooms.db);
    return rows[0]!.ms;
  };
  const statusOf = async (hash: string) => (await core.get(`/messages/${hash}/status`)).body.status;

  test('does not take down those of the same batch', async () => {
    await take('insert', 'new');
    const names = Array.from({ length: 600 }, (_, n) => (n === 7 ? 'long' : `short${n}`));
    const ends = await Promise.allSettled(names.map((name) => core.rooms.pipeline.submit(element(name))));
    const failed = ends.flatMap((end, n) => (end.status === 'rejected' ? [[n, end.reason.code]] : []));
    assert.deepEqual(failed, [[7, 'DATABASE_UNAVAILABLE']]);
    const ms = await spentMs();
    assert.ok(ms <= SEARCH_MAX_MS, `the others waited for ${ms} ms`);
  });

  test('does not hold up the line of those that are decided again, and is tried again', async () => {
    await sql`drop trigger takes_long on aggregate_entries`.execute(core.rooms.db);
    const { pipeline } = core.rooms;
    const elements = ['long', ...Array.from({ length: 300 }, (_, n) => `other${n}`)].map(element);
    await Promise.all(elements.map((one) => pipeline.submit(one)));
    await take('delete', 'old');
    const hashes = elements.map(({ message }) => message.itemHash);
    await pipeline.submit(sign('FORGET', { hashes }));
    await pipeline.idle();
    const ms = await spentMs();
    assert.ok(ms <= 2 * SEARCH_MAX_MS, `the others waited for ${ms} ms`);
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
