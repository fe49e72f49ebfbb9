import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { MessageDraft } from '@skerry/client';
import {
  decisiveFor,
  effectiveTime,
  isAuthorized,
  narrowTo,
  type parseAuthorizations,
} from '@skerry/protocol';
import fc from 'fast-check';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { readSecurity } from './authorizations.ts';

const T0 = 1_700_000_000;
const { alice, bob } = signers;

describe('permissions of strangers', () => {
  let core: TestCore;
  let nowMs = 0;
  before(async () => {
    core = await createTestCore({ now: () => nowMs });
  });
  after(() => core[Symbol.asyncDispose]());

  const send = (at: number, by: typeof alice, draft: Omit<MessageDraft, 'timestamp'>) => {
    nowMs = (T0 + at) * 1000;
    return core.send(by, { ...draft, timestamp: T0 + at });
  };
  const grant = (at: number, authorizations: object[]) =>
    send(at, alice, { type: 'AGGREGATE', content: { key: 'security', content: { authorizations } } });

  test('however long and many they are, what is read of them is as short as what is asked', async () => {
    const lists = Array.from({ length: 300 }, (_, n) => ({
      address: n % 2 ? bob.address : `0x${n.toString(16).padStart(40, '0')}`,
      channels: [`channel ${n}`, 'x'.repeat(100)],
    }));
    for (let n = 0; n < 10; n++) assert.equal((await grant(n, lists)).status, 200);
    await grant(5_000, [
      { address: bob.address, channels: ['mine', ...lists.map(({ address }) => address)] },
    ]);
    const acting = { senders: new Set([bob.address]), values: new Set(['ETH', 'POST', 'mine', 'note']) };
    const read = async (...at: number[]) => {
      const times = new Set(at.map((one) => T0 + one));
      return (await readSecurity(core.rooms.db, [alice.address], acting, times)).get(alice.address)!;
    };
    const hold = async (...at: number[]) => (await read(...at)).map(({ time }) => time - T0).toSorted();
    assert.deepEqual([await hold(10_000), await hold(1_000), await hold(-700)], [[5_000], [9], []]);
    assert.deepEqual(await hold(7, 4_500), [5_000, 7, 8, 9], 'what held, and what may have revoked it');
    const history = await read(7, 4_500);
    const { length } = JSON.stringify(history);
    assert.ok(length < 5_000, `${length} characters`);
    const note = (at: number, channel: string) =>
      send(at, bob, {
        type: 'POST',
        channel,
        content: { type: 'note', address: alice.address, content: at },
      });
    assert.equal((await note(10_000, 'mine')).status, 200);
    assert.equal((await note(10_001, 'other')).status, 403);
    assert.equal((await note(1_000, 'mine')).status, 403);
    await send(20_000, alice, { type: 'AGGREGATE', content: { key: 'security', content: { about: 'me' } } });
    assert.equal((await note(20_700, 'mine')).status, 200, 'an element without the field changes nothing');
    await send(30_000, alice, {
      type: 'AGGREGATE',
      content: { key: 'security', content: { authorizations: null } },
    });
    assert.equal((await note(30_700, 'mine')).status, 403, 'one that says nothing of anybody revokes');
  });

  test('however often an owner changed them, what decides is found, and nothing else is looked at', async () => {
    const { db } = core.rooms;
    await db.transaction().execute(async (trx) => {
      // Every second for an hour, and as many that came late.
      const dated = sql`owner, key, field, '[]', ${T0 + 50_000}::float8 + n, md5(n::text) || md5(n::text)`;
      await sql`insert into aggregate_covered select ${dated} from aggregate_entries, generate_series(1, 7200) n
        where key = 'security' and field = 'authorizations'`.execute(trx);
      await sql`insert into messages (item_hash, form, chain, sender, owner, type, "time", subject, tags, signature, status, decide_by_ms,
          settled_at_ms, noted_ms)
        select md5(n::text) || md5(n::text), form, chain, sender, owner, type, ${T0 + 50_000}::float8 + n, subject, '{}', '', status, 0, 0,
          case when n > 3600 then ${(T0 + 100_000) * 1_000}::bigint + n * 1000 end
        from messages, generate_series(1, 7200) n where type = 'AGGREGATE' and "time" = ${T0 + 30_000}`.execute(
        trx,
      );
    });
    await sql`analyze messages`.execute(db);
    await sql`analyze aggregate_covered`.execute(db);
    const acting = { senders: new Set([bob.address]), values: new Set<string>() };
    const all = await listAll();
    for (const at of [49_000, 50_100.5, 53_000, 90_000, 103_700, 106_000, 200_000]) {
      const read = await db.transaction().execute(async (trx) => {
        const before = await countLooks(trx);
        const history = await readSecurity(trx, [alice.address], acting, new Set([T0 + at]));
        return { history: history.get(alice.address)!, looked: (await countLooks(trx)) - before };
      });
      const expected = decisiveFor(all, [T0 + at]).map(({ itemHash }) => itemHash);
      assert.deepEqual(read.history.map(({ itemHash }) => itemHash).toSorted(), expected.toSorted(), `${at}`);
      // An act of one moment hangs on what changed in the ten minutes after it. What was dated before it and came later is passed over.
      if (at < 90_000 || at > 107_200)
        assert.ok(read.looked < 4 * expected.length + 20, `${read.looked} looked at for ${expected.length}`);
    }
  });

  /** Messages that this session has looked at. */
  async function countLooks(trx: Kysely<Schema>): Promise<number> {
    const { rows } = await sql<{ rows: number }>`
      select (idx_tup_fetch + seq_tup_read)::int as rows from pg_stat_xact_user_tables where relname = 'messages'`.execute(
      trx,
    );
    return rows[0]!.rows;
  }

  /** All that alice ever permitted. */
  async function listAll() {
    const { rows } = await sql<{ time: number; notedMs: number | null; itemHash: string }>`
      select e."time", noted_ms as "notedMs", item_hash as "itemHash" from (
        select * from aggregate_entries union all select * from aggregate_covered) e join messages using (item_hash)
      where e.owner = ${alice.address} and e.key = 'security' and e.field = 'authorizations'`.execute(
      core.rooms.db,
    );
    return rows.map((row) => ({ ...row, since: effectiveTime(row) }));
  }
});

test('what is left of permissions permits the same of the acts that it is for', () => {
  const [senders, values] = [
    ['0xa', '0xB', '0xc'],
    ['ETH', 'SOL', 'POST', 'AGGREGATE', 'one', ''],
  ];
  const text = fc.constantFrom(...values!, 'elsewhere', '\0');
  const list = fc.option(fc.array(text, { maxLength: 4 }), { nil: undefined });
  const entry = fc.record({
    address: fc.constantFrom('0xA', '0xb', '0xd'),
    chain: fc.option(text, { nil: undefined }),
    ...{ channels: list, types: list, post_types: list, aggregate_keys: list },
  });
  const value = fc.option(fc.constantFrom(...values!), { nil: null });
  const act = fc.record({
    sender: fc.constantFrom(...senders!),
    chain: fc.constantFrom('ETH', 'SOL'),
    type: fc.constantFrom('POST', 'AGGREGATE'),
    ...{ channel: value, contentType: value, aggregateKey: value },
  });
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 5 }),
      act,
      (entries: ReturnType<typeof parseAuthorizations>, one) => {
        const narrowed = narrowTo(entries, { senders: new Set(senders), values: new Set(values) });
        assert.equal(isAuthorized(narrowed, one), isAuthorized(entries, one));
      },
    ),
    { numRuns: 2_000 },
  );
});
