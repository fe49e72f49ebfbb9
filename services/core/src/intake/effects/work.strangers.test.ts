import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { CREDIT_CHANNEL, CREDIT_POST, PRICING_KEY, verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';
import { acceptMessage } from '../accept.ts';
import { amendEffect } from './posts.ts';

const T0 = 1_700_000_000;
const { alice, bob, credit } = signers;

/** Counts what is put in line to be decided again; no rollback takes that back. */
const COUNT = sql`
  create sequence lined_up minvalue 0 start 0;
  create function note_line() returns trigger language plpgsql as $$
  begin
    perform setval('lined_up', (select last_value from lined_up) + 1);
    return new;
  end $$;
  create trigger notes_line before insert on reconsider for each row execute function note_line()`;

describe('what one message of a stranger has others wait for', () => {
  let core: TestCore;
  let sent = 0;
  before(async () => {
    core = await createTestCore({ creditEnforcement: true });
    await COUNT.execute(core.rooms.db);
  });
  after(() => core[Symbol.asyncDispose]());

  /** As a peer passes it on, which says that it came in time. */
  async function put(signer: Signer, type: string, content: object): Promise<string> {
    const draft = { type, content, channel: CREDIT_CHANNEL, timestamp: T0 + sent, nonce: `${sent++}` };
    const { body, itemHash } = signMessage(draft as MessageDraft, signer);
    await core.rooms.intake.peer.keep([{ accepted: acceptMessage(verifySubmission(body, T0 + sent)) }]);
    await core.rooms.pipeline.idle();
    return itemHash;
  }
  async function linedUpBy(act: () => Promise<unknown>): Promise<number> {
    await sql`select setval('lined_up', 0)`.execute(core.rooms.db);
    await act();
    const { rows } = await sql<{ count: number }>`select last_value as count from lined_up`.execute(
      core.rooms.db,
    );
    return rows[0]!.count;
  }
  const post = (signer: Signer, type: string, content: object) => put(signer, 'POST', { type, content });
  const said = (signer: Signer) =>
    [
      () => put(signer, 'AGGREGATE', { key: PRICING_KEY, content: { instance: { compute_unit: 2 } } }),
      () =>
        post(signer, CREDIT_POST.distribution, {
          distribution: { credits: [{ address: alice.address, amount: 5, ref: `r${sent}` }] },
        }),
      () =>
        post(signer, CREDIT_POST.notice, {
          notice: { address: alice.address, state: 'low', credits: 1, runs_out_at: null },
        }),
    ] as const;

  test('what is said of credit by somebody who is not trusted with it has nothing decided again', async () => {
    const late = sent;
    sent += 1_000;
    await put(alice, 'INSTANCE', instanceContent);
    await put(bob, 'POST', { type: 'note', content: 1, address: alice.address });
    // Before what costs, so that it would matter.
    sent = late;
    for (const act of said(bob)) assert.equal(await linedUpBy(act), 0);
    for (const act of said(credit)) assert.ok((await linedUpBy(act)) > 0);
  });

  test('who names a post makes nobody look through what names it', async () => {
    const { db } = core.rooms;
    const original = await put(alice, 'POST', { type: 'note', content: 1 });
    const amend = await put(alice, 'POST', { type: 'amend', content: 2, ref: original });
    await sql`
      insert into messages (item_hash, form, chain, sender, owner, type, "time", content_type, subject, tags, signature,
        status, decide_by_ms, settled_at_ms)
      select md5(n::text) || md5(n::text), 'envelope', chain, sender, owner, type, "time" + n, 'comment', subject, '{}', '',
        status, 0, 0 from messages, generate_series(1, 2000) n where item_hash = ${amend}`.execute(db);
    await sql`analyze messages`.execute(db);
    const fetched = await db.transaction().execute(async (trx) => {
      // Of this session.
      const count = async () => {
        const { rows } = await sql<{ rows: number }>`
          select (idx_tup_fetch + seq_tup_read)::int as rows from pg_stat_xact_user_tables
          where relname = 'messages'`.execute(trx);
        return rows[0]!.rows;
      };
      const before = await count();
      await amendEffect.write([{ data: { original } } as never], { trx } as never);
      return (await count()) - before;
    });
    assert.ok(fetched < 10, `${fetched} messages were looked at`);
    assert.equal((await core.get(`/posts.json?hashes=${original}`)).body.posts[0]?.item_hash, amend);
  });
});
