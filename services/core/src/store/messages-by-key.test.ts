import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import type { Candidate } from '../intake/pipeline/decided.ts';
import { loadKept } from '../intake/pipeline/load-known.ts';
import { readSharedTexts } from '../state/messages/shared.ts';
import { MIGRATIONS } from '../testing/core.ts';
import type { Schema } from './schema.ts';

const KEPT = 5_000;
/** So many that they are planned for themselves. */
const BATCH = 200;

const hashOf = (n: number) => n.toString(16).padStart(64, '0');
const candidateOf = (n: number) => ({ accepted: { message: { itemHash: hashOf(n) } } }) as Candidate;

test('a batch that comes and a page that a peer asks for are looked up by their keys, also in a table that the planner knows nothing of', async () => {
  const log = createLogger('core', 'fatal');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  await sql`alter table messages set (autovacuum_enabled = false)`.execute(database.kysely);
  await sql`
    insert into messages (item_hash, chain, sender, type, "time", form, owner, tags, status, signature, source_text,
      decide_by_ms, settled_at_ms)
    select lpad(to_hex(n), 64, '0'), 'ETH', 'sender', 'POST', n, 'envelope', 'sender', '{}', 'processed', 'signature', '{}', 0, 0
    from generate_series(1, ${KEPT}::integer) n`.execute(database.kysely);
  const forgets = [
    [1, 'b'],
    [1, 'a'],
    [KEPT + 1, 'c'],
  ] as const;
  for (const [target, forget_hash] of forgets)
    await database.kysely
      .insertInto('forgets')
      .values({ target: hashOf(target), forget_hash })
      .execute();
  await database.kysely.transaction().execute(async (trx) => {
    // The first half are kept, and one of the others was forgotten before it came.
    const batch = Array.from({ length: BATCH }, (_, at) => candidateOf(KEPT - BATCH / 2 + 1 + at));
    const { known, forgottenBy } = await loadKept(trx, [candidateOf(1), ...batch]);
    assert.equal(known.size, 1 + BATCH / 2);
    assert.equal(known.get(hashOf(KEPT))?.fields.time, KEPT);
    assert.deepEqual(forgottenBy.get(hashOf(1)), ['a', 'b']);
    assert.deepEqual(forgottenBy.get(hashOf(KEPT + 1)), ['c']);
    assert.equal(known.has(hashOf(KEPT + 1)), false);
    assert.equal(forgottenBy.get(hashOf(KEPT + 2)), undefined);
    const { texts } = await readSharedTexts(
      trx,
      batch.map(({ accepted }) => accepted.message.itemHash),
      1_000_000,
    );
    assert.equal(texts.size, BATCH / 2);
    // Each has 512 bytes beside its text: one that is not here counts for nothing, and the last one goes beyond.
    const names = [KEPT + 3, 1, 2, 3].map(hashOf);
    const some = await readSharedTexts(trx, names, 1_000);
    assert.deepEqual([[...some.texts.keys()], some.looked], [names.slice(1, 3), 3]);
    const { rows } = await sql<{ read: number }>`
      select seq_tup_read as read from pg_stat_xact_user_tables where relname = 'messages'`.execute(trx);
    assert.deepEqual(rows, [{ read: 0 }]);
  });
});

/** A whole number below `max`, by a number: the same in each run. */
const chance = (seed: number, max: number) => Number.parseInt(hashOfText(`${seed}`).slice(0, 8), 16) % max;
const hashOfText = (text: string) => createHash('sha256').update(text).digest('hex');

test('a page that is read by its span has what it has by names: whatever is in force or is not, of one second or many, up to any size', async () => {
  const log = createLogger('core', 'fatal');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  const { kysely: db } = database;
  const kept = Array.from({ length: 400 }, (_, n) => ({
    time: Math.floor(n / 150),
    hash: n % 40 === 0 ? `Qm${hashOfText(`${n}`).slice(0, 44)}` : hashOfText(`${n}`),
    status: (['processed', 'processed', 'processed', 'pending', 'rejected'] as const)[chance(n, 5)]!,
    text: 'x'.repeat(chance(n, 700)),
  }));
  await sql`
    insert into messages (item_hash, chain, sender, type, "time", form, owner, tags, status, signature, source_text,
      decide_by_ms, settled_at_ms)
    select hash, 'ETH', 'sender', 'POST', "time", 'envelope', 'sender', '{}', status, 'signature', "text", 0, 0
    from jsonb_to_recordset(${JSON.stringify(kept)}::jsonb) as t (hash text, "time" double precision, status text, "text" text)`.execute(
    db,
  );
  // As a set has them: a CID by its own hash.
  const placeOf = ({ hash }: { hash: string }) => (hash.startsWith('Qm') ? hashOfText(hash) : hash);
  const order = kept.toSorted((a, b) => a.time - b.time || (placeOf(a) < placeOf(b) ? -1 : 1));
  for (let seed = 0; seed < 60; seed++) {
    const from = chance(seed, order.length);
    const page = order.slice(from, from + 1 + chance(seed + 1_000, 200));
    const names = [...page.map(({ hash }) => hash), hashOfText('not here')];
    const limit = chance(seed, 3) === 0 ? Number.MAX_SAFE_INTEGER : chance(seed + 2_000, 60_000);
    const named = await readSharedTexts(db, names, limit);
    const within = await readSharedTexts(db, names, limit, { from: page[0]!, to: page.at(-1)! });
    assert.deepEqual([...within.texts], [...named.texts]);
    assert.equal(within.looked, named.looked);
  }
});

test('a page at the edge of a second that has half of all messages is read from the index, also where a CID is its edge: the table was read, up to its end', async () => {
  const log = createLogger('core', 'fatal');
  await using database = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log });
  await sql`alter table messages set (autovacuum_enabled = false)`.execute(database.kysely);
  await sql`
    insert into messages (item_hash, chain, sender, type, "time", form, owner, tags, status, signature, source_text,
      decide_by_ms, settled_at_ms)
    select case when n % 50 = 0 then 'Qm' || lpad(n::text, 44, '0') else lpad(to_hex(n), 64, '0') end, 'ETH', 'sender', 'POST',
      least(n, ${KEPT}::integer), 'envelope', 'sender', '{}', 'processed', 'signature', '{}', 0, 0
    from generate_series(1, ${2 * KEPT}::integer) n`.execute(database.kysely);
  await sql`analyze messages`.execute(database.kysely);
  const names = [
    ...Array.from({ length: 49 }, (_, at) => hashOf(KEPT - 49 + at)),
    `Qm${`${KEPT + 50}`.padStart(44, '0')}`,
  ];
  const span = { from: { time: KEPT - 49, hash: names[0]! }, to: { time: KEPT, hash: names.at(-1)! } };
  await database.kysely.transaction().execute(async (trx) => {
    const { texts } = await readSharedTexts(trx, names, 1_000_000, span);
    assert.deepEqual([...texts.keys()], names);
    const { rows } = await sql<{ read: number }>`
      select seq_tup_read as read from pg_stat_xact_user_tables where relname = 'messages'`.execute(trx);
    assert.deepEqual(rows, [{ read: 0 }]);
  });
});
